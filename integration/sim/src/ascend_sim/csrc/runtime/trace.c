/* What the runtime tells a tracer: work that a stream or a graph runs, replays, events, copies. */
#include <time.h>

#include "sim.h"

static void (*tracer)(const sim_trace_event *);

void sim_set_tracer(void (*function)(const sim_trace_event *)) { tracer = function; }

int64_t sim_now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t sim_trace_begin(void) { return tracer ? sim_now_ns() : 0; }

void sim_trace_end(const sim_stream *stream, sim_trace_event event) {
    if (!tracer || !event.begin_ns) return;
    event.device = stream->device;
    event.stream = stream->id;
    event.end_ns = sim_now_ns();
    tracer(&event);
}

void sim_trace_mark(const sim_stream *stream, const sim_item *item, int64_t begin_ns) {
    bool records = item->kind == SIM_ITEM_RECORD;
    if (!begin_ns || (!records && item->kind != SIM_ITEM_WAIT && item->kind != SIM_ITEM_WAIT_VALUE)) return;
    sim_trace_end(stream, (sim_trace_event){.kind = records ? SIM_TRACE_RECORD : SIM_TRACE_WAIT,
                                            .event = item->event ? (const void *)item->event : item->address,
                                            .ticket = records ? item->event->completed : item->ticket, .begin_ns = begin_ns});
}

void sim_stream_number(void *handle, int *device, int *number) {
    pthread_mutex_lock(&sim_lock);
    const sim_stream *stream = sim_stream_of(handle);
    *device = stream->device;
    *number = stream->id;
    pthread_mutex_unlock(&sim_lock);
}
