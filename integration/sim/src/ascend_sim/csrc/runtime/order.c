/* Who is ordered after what: clocks of streams, of captured streams and of the host. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

bool sim_checking;

typedef struct {
    sim_clock clock;
    char name[96];
    bool dropped;
} actor;

typedef struct flag {
    const uint64_t *address;
    sim_clock clock; /* of the last write */
    struct flag *next;
} flag;

static actor *actors;
static size_t actor_count;
static flag *flags;
static __thread sim_place here;

/* ---- clocks ---- */

static void grow(sim_clock *clock, size_t count) {
    if (clock->count >= count) return;
    clock->at = realloc(clock->at, count * sizeof *clock->at);
    memset(clock->at + clock->count, 0, (count - clock->count) * sizeof *clock->at);
    clock->count = count;
}

void sim_clock_join(sim_clock *clock, const sim_clock *other) {
    grow(clock, other->count);
    for (size_t i = 0; i < other->count; i++)
        if (clock->at[i] < other->at[i]) clock->at[i] = other->at[i];
}

void sim_clock_set(sim_clock *clock, const sim_clock *other) {
    if (clock->count) memset(clock->at, 0, clock->count * sizeof *clock->at);
    sim_clock_join(clock, other);
}

void sim_clock_free(sim_clock *clock) {
    free(clock->at);
    *clock = (sim_clock){0};
}

/* ---- actors ---- */

int sim_actor_new(const char *format, ...) {
    size_t index = 0;
    if (!actor_count) { /* the host is the first */
        actors = calloc(1, sizeof *actors);
        actor_count = 1;
        snprintf(actors[SIM_HOST].name, sizeof actors[SIM_HOST].name, "the host");
    }
    while (index < actor_count && !actors[index].dropped) index++;
    if (index == actor_count) {
        actors = realloc(actors, ++actor_count * sizeof *actors);
        actors[index] = (actor){0};
    }
    actors[index].dropped = false; /* a successor goes on counting where the dropped one ended */
    grow(&actors[index].clock, index + 1);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(actors[index].name, sizeof actors[index].name, format, arguments);
    va_end(arguments);
    return (int)index;
}

void sim_actor_drop(int index) {
    if (index > SIM_HOST) actors[index].dropped = true;
}

const char *sim_actor_name(int index) { return actors[index].name; }
sim_clock *sim_actor_clock(int index) { return &actors[index].clock; }

int sim_actor_of(sim_stream *stream) {
    if (!stream->actor) stream->actor = sim_actor_new("stream %d (%p)", stream->id, (void *)stream);
    return stream->actor;
}

/* ---- what happens ---- */

void sim_act(int index, const sim_clock *moment, uint32_t graph) {
    sim_clock *clock = &actors[index].clock;
    sim_clock_join(clock, moment ? moment : &actors[SIM_HOST].clock);
    here = (sim_place){index, ++clock->at[index], graph};
}

sim_place sim_here(void) { return here; }

sim_clock sim_host_moment(void) {
    sim_clock copy = {0};
    if (actor_count) sim_clock_join(&copy, &actors[SIM_HOST].clock);
    return copy;
}

void sim_host_joins(const sim_clock *clock) {
    if (actor_count) sim_clock_join(&actors[SIM_HOST].clock, clock);
}

bool sim_host_is_after(const sim_clock *clock) {
    const sim_clock *host = &actors[SIM_HOST].clock;
    for (size_t i = 0; i < clock->count; i++)
        if (clock->at[i] > (i < host->count ? host->at[i] : 0)) return false;
    return true;
}

static flag *flag_at(const uint64_t *address) {
    flag *found = flags;
    while (found && found->address != address) found = found->next;
    if (found) return found;
    found = calloc(1, sizeof *found);
    *found = (flag){.address = address, .next = flags};
    return flags = found;
}

void sim_flag_written(const uint64_t *address) { sim_clock_set(&flag_at(address)->clock, &actors[here.actor].clock); }
void sim_flag_waited(const uint64_t *address) { sim_clock_join(&actors[here.actor].clock, &flag_at(address)->clock); }

/* ---- the mode ---- */

sim_order_mode sim_order(void) { return sim_checking ? SIM_ORDER_CHECK : sim_random ? SIM_ORDER_RANDOM : SIM_ORDER_OFF; }

void sim_order_set(sim_order_mode mode, uint64_t seed) {
    pthread_mutex_lock(&sim_lock);
    sim_finish();
    sim_attend((mode != SIM_ORDER_OFF) - (sim_order() != SIM_ORDER_OFF));
    sim_checking = mode == SIM_ORDER_CHECK;
    sim_random = mode == SIM_ORDER_RANDOM;
    sim_random_seed(seed);
    sim_histories_clear();
    pthread_mutex_unlock(&sim_lock);
}

static int (*observe_host)(void);
void sim_observe_host(int (*observer)(void)) { observe_host = observer; }
aclError sim_host_has_waited(aclError error) { return !error && sim_checking && observe_host ? observe_host() : error; }

/* ---- for the dispatch library; these take sim_lock ---- */

sim_place sim_order_enter(void *stream) {
    pthread_mutex_lock(&sim_lock);
    sim_place before = here;
    sim_act(sim_actor_of(sim_stream_of(stream)), NULL, 0);
    pthread_mutex_unlock(&sim_lock);
    return before;
}
void sim_order_return(sim_place place) { here = place; }
sim_place sim_order_here(void) { return here; }

int sim_order_use(const sim_access *access, const char *name) {
    pthread_mutex_lock(&sim_lock);
    int error = here.actor == SIM_HOST ? ACL_SUCCESS : sim_memory_use(access, name);
    pthread_mutex_unlock(&sim_lock);
    return error;
}

static bool reached(const sim_clock *clock, sim_place place) {
    return (size_t)place.actor < clock->count && clock->at[place.actor] >= place.epoch;
}

int sim_order_host_knows(sim_place place) {
    pthread_mutex_lock(&sim_lock);
    bool known = reached(&actors[SIM_HOST].clock, place);
    pthread_mutex_unlock(&sim_lock);
    return known;
}
int sim_order_is_before(sim_place place) {
    pthread_mutex_lock(&sim_lock);
    bool before = reached(&actors[here.actor].clock, place);
    pthread_mutex_unlock(&sim_lock);
    return before;
}
const char *sim_order_name(sim_place place) { return sim_actor_name(place.actor); }

void sim_order_host_waits(void *stream) {
    pthread_mutex_lock(&sim_lock);
    sim_host_joins(sim_actor_clock(sim_actor_of(sim_stream_of(stream))));
    pthread_mutex_unlock(&sim_lock);
}

void sim_order_join_streams(void *first, void *second) {
    pthread_mutex_lock(&sim_lock);
    int one = sim_actor_of(sim_stream_of(first)), other = sim_actor_of(sim_stream_of(second));
    sim_clock_join(sim_actor_clock(one), sim_actor_clock(other));
    sim_clock_join(sim_actor_clock(other), sim_actor_clock(one));
    pthread_mutex_unlock(&sim_lock);
}

sim_place sim_order_enter_beside(void *stream, int *beside, const char *name) {
    pthread_mutex_lock(&sim_lock);
    sim_place before = here;
    int submitting = sim_actor_of(sim_stream_of(stream));
    if (!*beside) *beside = sim_actor_new("%s", name);
    sim_act(submitting, NULL, 0);
    sim_act(*beside, sim_actor_clock(submitting), 0);
    pthread_mutex_unlock(&sim_lock);
    return before;
}
void sim_order_stream_follows(void *stream, int beside) {
    pthread_mutex_lock(&sim_lock);
    int follower = sim_actor_of(sim_stream_of(stream));
    sim_clock_join(sim_actor_clock(follower), sim_actor_clock(beside));
    pthread_mutex_unlock(&sim_lock);
}
