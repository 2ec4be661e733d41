/* The order of work: who is ordered after what (order.c), and who has used which memory (footprint.c, history.c).
 *
 * Every stream, every further stream of a captured graph and the host is an actor with a vector clock. The host is one
 * actor, because threads hand on by locks and queues what they have waited for, which the runtime does not see. Only
 * the check keeps clocks; callers hold sim_lock unless said otherwise. */
#ifndef ASCEND_SIM_ORDER_H
#define ASCEND_SIM_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../sim_api.h"

struct sim_stream;

/* ---- clocks: per actor, the number of its pieces of work that have happened before ---- */
typedef struct {
    uint64_t *at;
    size_t count;
} sim_clock;

void sim_clock_join(sim_clock *clock, const sim_clock *other);
void sim_clock_set(sim_clock *clock, const sim_clock *other);
void sim_clock_free(sim_clock *clock);

/* ---- actors ---- */
#define SIM_HOST 0
extern bool sim_checking;
int sim_actor_new(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_actor_drop(int actor);
const char *sim_actor_name(int actor);
sim_clock *sim_actor_clock(int actor);
int sim_actor_of(struct sim_stream *stream);

/* From here on this thread acts for the actor, after what the host knew at `moment` (NULL: now), as its next piece of
 * work; `graph` is the number of the graph it belongs to, or 0. */
void sim_act(int actor, const sim_clock *moment, uint32_t graph);
sim_place sim_here(void);
sim_clock sim_host_moment(void); /* a copy of the host's clock */
void sim_host_joins(const sim_clock *clock);
bool sim_host_is_after(const sim_clock *clock);

/* Flags in device memory that streams write and wait for. */
void sim_flag_written(const uint64_t *address);
void sim_flag_waited(const uint64_t *address);

/* ---- footprint.c: the bytes that a strided tensor covers ---- */
#define SIM_FOOTPRINT_DIMS 8
typedef struct {
    uintptr_t start, end; /* first byte, and one behind the last */
    size_t run;           /* bytes of the innermost contiguous piece */
    int dims;             /* repetitions of it, smallest stride first */
    struct {
        size_t count, stride;
    } dim[SIM_FOOTPRINT_DIMS];
} sim_footprint;

sim_footprint sim_footprint_of(const sim_access *access);
bool sim_footprints_meet(const sim_footprint *a, const sim_footprint *b);
bool sim_footprint_covers(const sim_footprint *a, const sim_footprint *b);

/* ---- history.c: last writers and readers of memory ---- */
typedef struct sim_use sim_use;
typedef struct {
    sim_use *uses;
    size_t count, capacity;
} sim_history;

/* Notes a use of memory by the acting actor. Returns an ACL error if it is not ordered with a conflicting one. */
int sim_history_use(sim_history *history, const sim_access *access, const char *name);
void sim_history_clear(sim_history *history);

/* Blocks of device and pinned memory, so that a use finds its history. These take a lock of their own. */
void sim_block_add(void *start, size_t size, bool pinned);
void sim_block_remove(void *start);
/* Uses of memory outside all blocks (pageable host memory) are not noted. */
int sim_memory_use(const sim_access *access, const char *name);
void sim_histories_clear(void);

#endif
