/* Events. An ordinary event is complete when its last record has taken place. An external event (ACL_EVENT_EXTERNAL)
 * is a flag: waits test it, records set it and resets clear it, also from inside a captured graph. torch_npu 2.13 keeps
 * the flags of its ExternalEvents in device memory itself, with aclrtValueWrite and aclrtValueWait. */
#include <stdlib.h>

#include "sim.h"

static atomic_uint next_id = 1;

static bool is_external(const sim_event *event) { return event->flags & ACL_EVENT_EXTERNAL; }

bool sim_wait_over(const sim_item *item) {
    if (item->kind == SIM_ITEM_WAIT) return item->ticket ? item->event->completed >= item->ticket : item->event->recorded;
    if (item->kind != SIM_ITEM_WAIT_VALUE) return true;
    switch (item->comparison) {
    case ACL_STREAM_WAIT_VALUE_GEQ: return (int64_t)(*item->address - item->value) >= 0;
    case ACL_STREAM_WAIT_VALUE_EQ: return *item->address == item->value;
    case ACL_STREAM_WAIT_VALUE_AND: return (*item->address & item->value) != 0;
    default: return ~(*item->address | item->value) != 0; /* ACL_STREAM_WAIT_VALUE_NOR */
    }
}

void sim_run_mark(const sim_item *item) {
    sim_event *event = item->event;
    sim_clock *clock = sim_checking ? sim_actor_clock(sim_here().actor) : NULL;
    switch (item->kind) {
    case SIM_ITEM_RECORD:
        event->completed++;
        event->recorded = true;
        event->when_ms = sim_now_ms();
        if (clock) sim_clock_set(&event->clock, clock);
        break;
    case SIM_ITEM_RESET: event->recorded = false; break;
    case SIM_ITEM_WRITE_VALUE:
        *item->address = item->value;
        if (clock) sim_flag_written(item->address);
        break;
    case SIM_ITEM_WAIT:
        if (clock) sim_clock_join(clock, &event->clock);
        return;
    case SIM_ITEM_WAIT_VALUE:
        if (clock) sim_flag_waited(item->address);
        return;
    default: return;
    }
    pthread_cond_broadcast(&sim_changed);
}

void sim_event_retain(sim_event *event) { event->references++; }
void sim_event_drop(sim_event *event) {
    if (--event->references) return;
    sim_clock_free(&event->clock);
    free(event);
}

/* aclrtCreateEvent(Ex)WithFlag. */
aclError aclrtCreateEventExWithFlag(aclrtEvent *handle, uint32_t flags) {
    sim_event *event = calloc(1, sizeof *event);
    event->id = next_id++;
    event->flags = flags;
    event->references = 1;
    *handle = event;
    return ACL_SUCCESS;
}
aclError aclrtCreateEventWithFlag(aclrtEvent *handle, uint32_t flags) { return aclrtCreateEventExWithFlag(handle, flags); }

/* aclrtDestroyEvent: the event lives on while queued work or a captured graph refers to it. */
aclError aclrtDestroyEvent(aclrtEvent event) {
    pthread_mutex_lock(&sim_lock);
    sim_event_drop(event);
    pthread_mutex_unlock(&sim_lock);
    return ACL_SUCCESS;
}

static aclError place(sim_stream *stream, sim_item_kind kind, sim_event *event, uint64_t ticket) {
    sim_item item = {.kind = kind, .event = event, .ticket = ticket};
    sim_event_retain(event);
    return stream->capture ? sim_capture_item(stream->capture, stream, item) : sim_enqueue(stream, item);
}

/* aclrtRecordEvent: marks the present end of a stream. While capturing, an ordinary event only notes the position (for
 * forks and joins of streams), an external one becomes part of the graph. */
aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream stream_handle) {
    sim_event *event = handle;
    aclError error = ACL_SUCCESS;
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(stream_handle);
    if (stream->capture && !is_external(event)) {
        event->capture = stream->capture;
        event->capture_id = stream->capture->id;
        event->capture_stream = stream;
        event->captured = stream->captured;
        event->mark = ++stream->capture->marks;
        sim_capture_event(stream->capture, stream, SIM_ITEM_MARK, event->mark);
    } else {
        event->capture = NULL;
        if (!stream->capture) event->issued++;
        error = place(stream, SIM_ITEM_RECORD, event, 0);
    }
    pthread_mutex_unlock(&sim_lock);
    return error;
}

/* aclrtStreamWaitEvent: later work of the stream waits for the event. A stream outside the capture that waits for an
 * event recorded inside it joins the capture. */
aclError aclrtStreamWaitEvent(aclrtStream stream_handle, aclrtEvent handle) {
    sim_event *event = handle;
    aclError error = ACL_SUCCESS;
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(stream_handle);
    if (is_external(event)) {
        error = place(stream, SIM_ITEM_WAIT, event, 0);
    } else if (event->capture && !sim_is_capturing(event->capture, event->capture_id)) {
        error = sim_fail(ACL_ERROR_RT_EVENT_CAPTURED,
                         "stream %d would wait for an event that was last recorded inside a capture, which has ended", stream->id);
    } else if (event->capture) {
        if (!stream->capture) {
            stream->capture = event->capture;
            stream->captured = stream->joined = 0;
            sim_attend(1);
        }
        if (stream->capture != event->capture) {
            error = sim_fail(ACL_ERROR_STREAM_CAPTURE_CONFLICT, "stream %d would take part in two captures", stream->id);
        } else {
            if (event->capture_stream->joined < event->captured) event->capture_stream->joined = event->captured;
            sim_capture_event(stream->capture, stream, SIM_ITEM_JOIN, event->mark);
        }
    } else if (event->issued > event->completed || (sim_checking && event->issued)) {
        error = place(stream, SIM_ITEM_WAIT, event, event->issued);
    } else {
        int64_t begin = sim_trace_begin();
        sim_trace_end(stream, (sim_trace_event){.kind = SIM_TRACE_WAIT, .event = event, .ticket = event->issued, .begin_ns = begin});
    }
    pthread_mutex_unlock(&sim_lock);
    return error;
}

/* aclrtResetEvent: clears the flag of an external event, in stream order. */
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream_handle) {
    pthread_mutex_lock(&sim_lock);
    aclError error = place(sim_stream_of(stream_handle), SIM_ITEM_RESET, event, 0);
    pthread_mutex_unlock(&sim_lock);
    return error;
}

static bool is_complete(void *handle) {
    const sim_event *event = handle;
    return is_external(event) ? event->recorded : event->completed >= event->issued;
}

/* aclrtSynchronizeEvent: waits until the event has been recorded. */
aclError aclrtSynchronizeEvent(aclrtEvent event) {
    pthread_mutex_lock(&sim_lock);
    const sim_event *captured = event;
    if (captured->capture && sim_is_capturing(captured->capture, captured->capture_id)) {
        pthread_mutex_unlock(&sim_lock);
        return sim_fail(ACL_ERROR_RT_EVENT_CAPTURED, "waiting for an event that a capture under way records is not permitted: the "
                        "captured work has not been launched");
    }
    aclError error = is_complete(event) ? ACL_SUCCESS : sim_wait(is_complete, event, NULL, "waiting for an event");
    if (!error && sim_checking) sim_host_joins(&((sim_event *)event)->clock);
    pthread_mutex_unlock(&sim_lock);
    return sim_host_has_waited(error);
}

/* The memory allocator asks whether a block that another stream has used may be reused. In the check it may only if the
 * host has waited for that stream; a yes for any other reason would order the host after the stream by luck. */
static bool is_allocators(const sim_event *event) { return event->flags == ACL_EVENT_CAPTURE_STREAM_PROGRESS; }

static bool complete(aclrtEvent handle) {
    sim_event *event = handle;
    const bool allocators = is_allocators(event);
    pthread_mutex_lock(&sim_lock);
    if (!allocators) sim_dawdle(); /* when the allocator asks does not depend on the program alone: no draws for it */
    bool result = is_complete(event);
    if (result && sim_checking) {
        if (allocators) result = sim_host_is_after(&event->clock);
        else sim_host_joins(&event->clock);
    }
    pthread_mutex_unlock(&sim_lock);
    return result;
}

/* aclrtQueryEventStatus, aclQueryEventRecordedStatus: whether the record has taken place. */
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status) {
    *status = complete(event) ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return ACL_SUCCESS;
}
aclError aclQueryEventRecordedStatus(aclrtEvent event, aclrtEventRecordedStatus *status) {
    return aclrtQueryEventStatus(event, status);
}

/* aclrtQueryEventWaitStatus: whether the waits for the event are over. */
aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status) {
    *status = complete(event) ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

/* aclrtEventElapsedTime: milliseconds of host time between two records; what a kernel takes on a CPU, not on an NPU. */
aclError aclrtEventElapsedTime(float *milliseconds, aclrtEvent start, aclrtEvent end) {
    if (!complete(start) || !complete(end))
        return sim_fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "elapsed time of an event that has not been recorded");
    *milliseconds = (float)(((sim_event *)end)->when_ms - ((sim_event *)start)->when_ms);
    return ACL_SUCCESS;
}

/* aclrtEventGetTimestamp: microseconds. */
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp) {
    *timestamp = (uint64_t)(((sim_event *)event)->when_ms * 1e3);
    return ACL_SUCCESS;
}

static aclError place_value(sim_item item, aclrtStream stream_handle) {
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(stream_handle);
    aclError error = stream->capture ? sim_capture_item(stream->capture, stream, item) : sim_enqueue(stream, item);
    pthread_mutex_unlock(&sim_lock);
    return error;
}

/* aclrtValueWrite: writes a 64-bit value to device memory, in stream order. */
aclError aclrtValueWrite(void *address, uint64_t value, uint32_t flag, aclrtStream stream) {
    if (flag) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtValueWrite: flag %u is reserved and must be 0", flag);
    return place_value((sim_item){.kind = SIM_ITEM_WRITE_VALUE, .address = address, .value = value}, stream);
}

/* aclrtValueWait: later work of the stream waits until the value in device memory compares as asked. */
aclError aclrtValueWait(void *address, uint64_t value, uint32_t flag, aclrtStream stream) {
    if (flag > ACL_STREAM_WAIT_VALUE_NOR) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtValueWait: unknown comparison %u", flag);
    return place_value((sim_item){.kind = SIM_ITEM_WAIT_VALUE, .address = address, .value = value, .comparison = flag}, stream);
}
