/* Shared declarations of the simulated ACL runtime.
 *
 * The runtime stands in for CANN's libascendcl under the real torch_npu. Device memory is host memory and work runs in
 * the thread that submits it; a stream queues work only while something it waits for has not happened yet. The dispatch
 * library (csrc/dispatch) submits operators through sim_submit(); everything else arrives through the ACL calls.
 */
#ifndef ASCEND_SIM_RUNTIME_H
#define ASCEND_SIM_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "acl/acl.h"
#include "acl/error_codes/rt_error_codes.h"

#include "../sim_api.h"
#include "order.h"

#define SIM_MAX_DEVICES 64

typedef struct sim_stream sim_stream;
typedef struct sim_event sim_event;
typedef struct sim_model sim_model;
typedef struct sim_task_group sim_task_group;
typedef struct sim_replay sim_replay;

/* What a stream or a captured graph can be asked to do. */
typedef enum {
    SIM_ITEM_WORK,
    SIM_ITEM_RECORD,
    SIM_ITEM_WAIT,
    SIM_ITEM_RESET,
    SIM_ITEM_REPLAY,
    SIM_ITEM_WRITE_VALUE,
    SIM_ITEM_WAIT_VALUE,
    SIM_ITEM_UPDATE, /* of a task of a graph */
    SIM_ITEM_MARK,   /* inside a graph: where an event was recorded, and where a stream of the capture waits for it */
    SIM_ITEM_JOIN
} sim_item_kind;

typedef struct {
    sim_item_kind kind;
    sim_work work;       /* SIM_ITEM_WORK, _UPDATE */
    sim_event *event;    /* SIM_ITEM_RECORD, _WAIT, _RESET */
    uint64_t ticket;     /* SIM_ITEM_WAIT: number of completed records of the event that satisfies the wait; 0: its flag */
    sim_replay *replay;  /* SIM_ITEM_REPLAY */
    sim_model *model;    /* SIM_ITEM_UPDATE: the graph and the index of the task */
    size_t index;
    size_t mark;         /* SIM_ITEM_MARK, _JOIN: number of the mark in its graph */
    int lane;            /* of a captured item: number of its stream in the graph */
    bool grouped;        /* of a captured item: it is in a task group, so that updates replace its work */
    uint64_t turn;       /* work in turn that is queued: its number; 0 for other items */
    sim_clock moment;    /* what the host knew when the item was queued, for the check */
    uint64_t *address;   /* SIM_ITEM_WRITE_VALUE, _WAIT_VALUE: device memory, the value and how to compare it */
    uint64_t value;
    uint32_t comparison;
} sim_item;

typedef struct {
    sim_item *items;
    size_t head, tail, capacity;
} sim_queue;

struct sim_stream {
    int id;
    int device;
    int actor;               /* its number among those whose order is checked; 0: none yet */
    sim_queue queue;         /* work that could not run yet; empty almost always */
    uint64_t since;          /* when the queue began to fill, as a count of such beginnings */
    pthread_t runner;        /* the thread that runs the queue, while running */
    bool running;
    bool timed_out;          /* a wait for this stream gave up and nothing has moved since */
    aclError error;          /* first failure of queued work, reported by the next synchronisation */
    char error_text[512];
    sim_model *capture;      /* the graph this stream records into, or NULL */
    uint64_t captured;       /* items this stream recorded in the present capture */
    uint64_t joined;         /* how many of them a stream of the same capture has waited for */
    sim_task_group *update;  /* the task group being updated, or NULL */
    size_t update_next;
    sim_stream *next;        /* list of all streams */
};

struct sim_event {
    uint32_t id;
    uint32_t flags;           /* ACL_EVENT_* */
    uint64_t issued;          /* records submitted */
    uint64_t completed;       /* records that took place */
    bool recorded;            /* the flag that waits of external events test and reset clears */
    double when_ms;           /* time of the last record, monotonic clock */
    int references;           /* handle, queued items and captured items */
    sim_model *capture;       /* the capture in which it was last recorded, or NULL */
    sim_stream *capture_stream;
    uint32_t capture_id;
    uint64_t captured;        /* items of capture_stream before that record */
    size_t mark;              /* the record's number in that capture */
    sim_clock clock;          /* of the stream at the last record, for the check */
};

/* A stream that takes part in a capture. */
typedef struct {
    sim_stream *stream; /* while capturing */
    int stream_id;
    int actor;
} sim_lane;

struct sim_model {
    uint32_t id;
    int references;           /* handle and queued replays */
    int device;
    sim_stream *origin;       /* while capturing */
    aclmdlRICaptureMode mode;
    pthread_t thread;
    sim_item *items;
    size_t count, capacity;
    sim_lane *lanes;          /* the first is the origin's */
    int lane_count;
    size_t marks;
    bool in_turn;             /* some task runs in turn */
    sim_history tasks;        /* updates and runs of the tasks, by their index, for the check */
    sim_task_group *groups;   /* list */
    sim_task_group *open;     /* begun and not ended */
    int executing;            /* replays that run a task right now */
    sim_work *retired;        /* tasks replaced while executing, destroyed afterwards */
    size_t retired_count;
    sim_model *next;          /* list of capturing graphs */
};

struct sim_task_group {
    sim_model *model;
    size_t begin, end;
    sim_task_group *next;
};

typedef struct {
    bool reached;
    sim_clock clock;
} sim_mark;

struct sim_replay {
    sim_model *model;
    sim_stream *stream;
    size_t position;  /* of the next item; in random order, of the first that has not run */
    size_t *next;     /* in random order: the next item of each lane */
    sim_mark *marks;
    sim_clock moment; /* what the host knew at the launch */
    aclError error;   /* of the first task that failed; no task runs after it */
};

/* ---- locking: one lock for the state of streams, events and graphs; never held while work runs ---- */
extern pthread_mutex_t sim_lock;
extern pthread_cond_t sim_changed;

/* ---- config.c ---- */
const char *sim_soc(void);
int sim_device_count(void);
uint64_t sim_memory_limit(void);
double sim_event_timeout_s(void);
aclError sim_fail(aclError code, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- device.c ---- */
int sim_current_device(void);

/* ---- stream.c: callers hold sim_lock unless said otherwise ---- */
sim_stream *sim_stream_of(aclrtStream handle); /* NULL handle: the default stream of the current device */
aclError sim_enqueue(sim_stream *stream, sim_item item);
void sim_pump_all(void);                        /* run whatever became able to run */
bool sim_step(void);                            /* in random order: run something, if anything can run */
void sim_dawdle(void);                          /* in random order: run something, or not */
void sim_finish(void);                          /* in random order: run everything that can run */
bool sim_nothing_queued(void);
bool sim_collectives_queued(void);              /* in random order */
uint64_t sim_host_moves(void);                  /* how often the host has submitted work or run some of it */
aclError sim_drain(sim_stream *stream);         /* wait until the queue is empty */
void sim_item_release(sim_item *item);
sim_stream *sim_streams(void);
double sim_now_ms(void);
void sim_attend(int change);                    /* adjust the number sim_attention() returns */
typedef bool (*sim_condition)(void *argument);
/* Waits until ready(argument), letting other threads' work finish; gives up when nothing moves for the timeout. */
aclError sim_wait(sim_condition ready, void *argument, sim_stream *stream, const char *what);

/* ---- progress.c: callers hold sim_lock unless said otherwise ---- */
void sim_progress_wanted(void);      /* a collective has been queued: the device may have to go on by itself */
bool sim_is_device_thread(void);     /* without sim_lock */
bool sim_sleep(const struct timespec *until); /* until sim_changed is signalled (true) or the time has come; lets Python go on */

/* ---- trace.c ---- */
int64_t sim_trace_begin(void); /* now, or 0 without a tracer */
void sim_trace_mark(const sim_stream *stream, const sim_item *item, int64_t begin_ns); /* a record or wait took place */
void sim_trace_end(const sim_stream *stream, sim_trace_event event); /* nothing where begin_ns is 0 */

/* ---- event.c: callers hold sim_lock ---- */
bool sim_wait_over(const sim_item *item); /* of a wait: may what follows it run? true for other items */
void sim_run_mark(const sim_item *item); /* runs a record, reset, write of a value, or a wait that is over */
void sim_event_retain(sim_event *event);
void sim_event_drop(sim_event *event);

/* ---- capture.c: callers hold sim_lock ---- */
aclError sim_capture_item(sim_model *model, sim_stream *stream, sim_item item);
void sim_capture_event(sim_model *model, sim_stream *stream, sim_item_kind kind, size_t mark);
bool sim_is_capturing(const sim_model *model, uint32_t id);
bool sim_capture_forbids(void); /* takes sim_lock: does a capture forbid an unsafe call in this thread? */

/* ---- graph.c: callers hold sim_lock ---- */
void sim_model_drop(sim_model *model);

/* ---- tasks.c: callers hold sim_lock ---- */
aclError sim_task_run(const sim_replay *replay, size_t index); /* releases it meanwhile */
aclError sim_update_item(sim_stream *stream, sim_item item);
aclError sim_update_run(sim_item *item); /* leaves the replaced task in the item */

/* ---- replay.c: callers hold sim_lock ---- */
/* Runs a replay as far as it can: 0 done, SIM_BLOCKED at an event that is not recorded, or an ACL error. In random order
 * it runs one task: SIM_MORE. */
#define SIM_BLOCKED (-1)
#define SIM_MORE (-2)
aclError sim_replay_run(sim_replay *replay);
void sim_replay_free(sim_replay *replay);
bool sim_replay_can_run(const sim_replay *replay);
const sim_item *sim_replay_next(const sim_replay *replay); /* NULL: finished */
extern sim_counters sim_counts;

/* ---- random.c ---- */
extern bool sim_random;
void sim_random_seed(uint64_t seed);
size_t sim_random_below(size_t bound);

/* ---- order.c: without sim_lock: after the host has waited without `error`, lets the observer look; returns its error ---- */
aclError sim_host_has_waited(aclError error);

#endif
