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
    const char *name; /* for error messages; lives as long as the process */
    int (*run)(void *context);
    void (*destroy)(void *context);
    void *context;
    int in_turn; /* runs after all such work that was submitted before it, whatever its stream: collectives */
    /* NULL: always. Asked at each launch (by its number) of its graph, without locks; 0 or an ACL error. */
    int (*may_replay)(void *context, uint64_t launch);
} sim_work;

typedef enum {
    SIM_RUNS,       /* nothing stands before it: work runs at once */
    SIM_CAPTURES,   /* work is recorded into a graph and does not run */
    SIM_UPDATES,    /* work replaces the next task of a captured task group and does not run */
    SIM_QUEUES      /* the stream waits for an event, or work runs in random order: it runs later */
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

/* ---- the order of work ---- */

typedef enum {
    SIM_ORDER_OFF,    /* work runs when it is submitted, unless its stream waits */
    SIM_ORDER_CHECK,  /* the same, and uses of memory that nothing orders are errors */
    SIM_ORDER_RANDOM  /* work is queued and runs in an order that a seed chooses among those that streams and events permit */
} sim_order_mode;

/* Finishes all work, then changes the mode. */
void sim_order_set(sim_order_mode mode, uint64_t seed);
sim_order_mode sim_order(void);
/* Before the process ends: from now on only threads that wait run queued work. */
void sim_progress_stop(void);

/* Where a piece of work stands: who does it, as its how-manieth, and in which graph (0: none). */
typedef struct {
    int actor;
    uint64_t epoch;
    uint32_t graph;
} sim_place;

/* A use of memory by an operator. */
typedef struct {
    const void *address;   /* of the first element */
    int dims;
    const int64_t *sizes, *strides; /* in elements */
    size_t item_size;
    const char *type;      /* name of the element type; lives as long as the process */
    const void *storage;   /* what the tensor is a view of */
    size_t storage_size;
    int writes;
    int fresh;             /* the memory has just been allocated */
} sim_access;

/* Whether an address lies in pinned host memory, which copies use while the host goes on. */
int sim_is_pinned(const void *address);

/* The calls below are for SIM_ORDER_CHECK. */

/* From here on this thread works on the stream, after all that the host knows; returns its place before, to return to. */
sim_place sim_order_enter(void *stream);
void sim_order_return(sim_place place);
sim_place sim_order_here(void);
/* The same for work that the stream begins and that goes on beside it (a communicator's stream), until a stream follows it. */
sim_place sim_order_enter_beside(void *stream, int *beside, const char *name);
void sim_order_stream_follows(void *stream, int beside);
void sim_order_join_streams(void *first, void *second);

/* Notes a use of memory by the work this thread does. Returns an ACL error if it conflicts with another that is not
 * ordered before it. */
int sim_order_use(const sim_access *access, const char *name);

/* The host has waited for the stream. sim_observe_host() names what to call, without locks, whenever the host has waited. */
void sim_order_host_waits(void *stream);
void sim_observe_host(int (*observer)(void));
int sim_order_host_knows(sim_place place);
int sim_order_is_before(sim_place place); /* before the work this thread does */
const char *sim_order_name(sim_place place);

/* Called with the name of each task that a graph runs (NULL: none); in skip mode tasks are counted and not run. */
void sim_observe_tasks(void (*observer)(const char *name));
void sim_skip_tasks(int skip);
sim_counters sim_read_counters(void);

/* What happened on a stream, for a tracer. It is called with the runtime's lock held and must not call back. */
typedef enum { SIM_TRACE_WORK, SIM_TRACE_REPLAY, SIM_TRACE_RECORD, SIM_TRACE_WAIT, SIM_TRACE_COPY } sim_trace_kind;
typedef struct {
    sim_trace_kind kind;
    const char *name;         /* SIM_TRACE_WORK, _COPY; lives as long as the process */
    const sim_work *work;     /* SIM_TRACE_WORK */
    unsigned graph;           /* SIM_TRACE_WORK of a graph, _REPLAY: its number; 0: none */
    size_t task, tasks;       /* position in the graph; SIM_TRACE_REPLAY: first task and one past the last */
    const void *event;        /* SIM_TRACE_RECORD, _WAIT */
    uint64_t ticket;          /* number of the record that is made or waited for */
    size_t bytes;             /* SIM_TRACE_COPY */
    int device, stream;       /* filled in, like end_ns, by the runtime */
    int64_t begin_ns, end_ns; /* monotonic clock */
} sim_trace_event;
void sim_set_tracer(void (*tracer)(const sim_trace_event *)); /* NULL: none */
int64_t sim_now_ns(void);
void sim_stream_number(void *stream, int *device, int *number);

/* Device memory in use, bytes. */
uint64_t sim_memory_used(int device);

#ifdef __cplusplus
}
#endif
#endif
