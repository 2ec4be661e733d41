/* Progress in random order while the host does something else. Ranks wait for each other inside collectives: one whose
 * host waits for a message, say, must run its part all the same, or the others never send that message. So a thread of
 * the device's own runs queued work once the host has left it alone for a while, as long as a collective is queued. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

#define QUIET_MS 2
#define STOP_MS 1000

static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER;
static pid_t owner; /* the process that has the thread: a fork does not take it along */
static bool stopped, busy;
static __thread bool is_device;

bool sim_is_device_thread(void) { return is_device; }

static struct timespec after_ms(long milliseconds) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += milliseconds % 1000 * 1000000L;
    time.tv_sec += milliseconds / 1000 + time.tv_nsec / 1000000000L;
    time.tv_nsec %= 1000000000L;
    return time;
}

static bool may_go_on(void) { return sim_random && !stopped && sim_collectives_queued(); }

static void *go_on(void *unused) {
    (void)unused;
    is_device = true;
    pthread_mutex_lock(&sim_lock);
    while (true) {
        if (!may_go_on()) {
            pthread_cond_wait(&wanted, &sim_lock);
            continue;
        }
        uint64_t moves = sim_host_moves();
        struct timespec until = after_ms(QUIET_MS);
        while (!stopped && pthread_cond_timedwait(&wanted, &sim_lock, &until) != ETIMEDOUT) continue;
        busy = true;
        while (may_go_on() && sim_host_moves() == moves && sim_step()) continue;
        busy = false;
        pthread_cond_broadcast(&sim_changed);
    }
    return NULL;
}

void sim_progress_wanted(void) {
    if (owner != getpid()) {
        pthread_t thread;
        int error = pthread_create(&thread, NULL, go_on, NULL);
        if (error) {
            fprintf(stderr, "ascend-sim: no thread for collectives in random order (pthread_create: error %d)\n", error);
            abort();
        }
        pthread_detach(thread);
        owner = getpid();
    }
    pthread_cond_signal(&wanted);
}

void sim_progress_stop(void) {
    const struct timespec until = after_ms(STOP_MS); /* a collective whose peers are gone does not end */
    pthread_mutex_lock(&sim_lock);
    stopped = true;
    pthread_cond_signal(&wanted);
    while (busy && sim_sleep(&until)) continue;
    pthread_mutex_unlock(&sim_lock);
}

/* ---- waiting for other threads ---- */

bool sim_sleep(const struct timespec *until) {
    /* The work that is waited for may be a reference in Python. */
    static int (*holds)(void);
    static void *(*release)(void);
    static void (*take)(void *);
    static bool looked;
    if (!looked) {
        *(void **)&holds = dlsym(RTLD_DEFAULT, "PyGILState_Check");
        *(void **)&release = dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
        *(void **)&take = dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
        looked = true;
    }
    void *python = holds && release && take && holds() ? release() : NULL;
    int error = until ? pthread_cond_timedwait(&sim_changed, &sim_lock, until) : pthread_cond_wait(&sim_changed, &sim_lock);
    if (python) { /* never wait for Python with the lock: the thread that has Python may wait for the lock */
        pthread_mutex_unlock(&sim_lock);
        take(python);
        pthread_mutex_lock(&sim_lock);
    }
    return error != ETIMEDOUT;
}
