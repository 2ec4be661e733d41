/* What the simulated runtime offers the dispatch library. Plain C, so that both sides share one header. */
#ifndef ASCEND_SIM_API_H
#define ASCEND_SIM_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of device work. run() returns 0 or an ACL error after sim_report(); destroy() frees the context once. */
typedef struct {
    const char *name; /* for error messages; lives at least as long as the context */
    int (*run)(void *context);
    void (*destroy)(void *context);
    void *context;
} sim_work;

typedef enum {
    SIM_RUNS,       /* nothing stands before it: work runs at once */
    SIM_CAPTURES,   /* work is recorded into a graph and does not run */
    SIM_UPDATES,    /* work replaces the next task of a captured task group and does not run */
    SIM_QUEUES      /* the stream waits for an event: work runs later */
} sim_mode;

typedef struct {
    uint64_t replays;       /* graph launches */
    uint64_t graph_tasks;   /* tasks run (or skipped, see sim_skip_tasks) by them */
    uint64_t task_updates;  /* task groups updated */
    uint64_t copies;        /* memory copies requested through the ACL interface itself */
    uint64_t suspensions;   /* replays that had to wait for an event */
} sim_counters;

/* Settings, validated by the caller. */
void sim_configure(const char *soc, int devices, uint64_t memory_bytes, double event_timeout_s, int trace);

/* Number of reasons for which a stream may be in another mode than SIM_RUNS; 0 lets callers skip sim_stream_mode(). */
int sim_attention(void);
sim_mode sim_stream_mode(void *stream);

/* Submits work to a stream; takes ownership of the context. Returns an ACL error. */
int sim_submit(void *stream, sim_work work);

/* Waits until all work of a stream has run. Refused while it captures. Returns an ACL error. */
int sim_stream_drain(void *stream, const char *why);

/* Error text of the calling thread. */
void sim_report(const char *message);
const char *sim_message(void);

/* Called with the name of each task that a graph runs (NULL: none); in skip mode tasks are counted and not run. */
void sim_observe_tasks(void (*observer)(const char *name));
void sim_skip_tasks(int skip);
sim_counters sim_read_counters(void);

/* Device memory in use, bytes. */
uint64_t sim_memory_used(int device);

#ifdef __cplusplus
}
#endif
#endif
