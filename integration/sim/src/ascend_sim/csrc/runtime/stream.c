/* Streams. Work runs in the submitting thread; it is queued only behind something that waits for an event, and then
 * runs in the thread that records the event. In random order all work is queued; threads that submit run some of it, and
 * threads that wait run what they choose at random until what they wait for has happened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sim_changed = PTHREAD_COND_INITIALIZER;

static sim_stream *streams;
static sim_stream *default_streams[SIM_MAX_DEVICES];
static atomic_int next_id = 1;
static atomic_int attention;
static size_t queued; /* streams whose queue is not empty */
static uint64_t turns_given, turns_over, beginnings, host_moves;

int sim_attention(void) { return attention; }
void sim_attend(int change) { attention += change; }
sim_stream *sim_streams(void) { return streams; }

double sim_now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static sim_stream *create(int device) {
    sim_stream *stream = calloc(1, sizeof *stream);
    stream->id = next_id++;
    stream->device = device;
    pthread_mutex_lock(&sim_lock);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&sim_lock);
    return stream;
}

sim_stream *sim_stream_of(aclrtStream handle) {
    if (handle) return handle;
    int device = sim_current_device();
    if (!default_streams[device]) {
        pthread_mutex_unlock(&sim_lock);
        sim_stream *stream = create(device);
        pthread_mutex_lock(&sim_lock);
        default_streams[device] = stream;
    }
    return default_streams[device];
}

/* ---- the queue ---- */

static bool empty(const sim_stream *stream) { return stream->queue.head == stream->queue.tail; }

static void push(sim_stream *stream, sim_item item) {
    sim_queue *queue = &stream->queue;
    if (queue->tail == queue->capacity) {
        size_t count = queue->tail - queue->head;
        if (queue->head && count) memmove(queue->items, queue->items + queue->head, count * sizeof *queue->items);
        queue->head = 0, queue->tail = count;
        if (count == queue->capacity) {
            queue->capacity = queue->capacity ? 2 * queue->capacity : 16;
            queue->items = realloc(queue->items, queue->capacity * sizeof *queue->items);
        }
    }
    if (empty(stream)) {
        stream->since = ++beginnings;
        queued++;
        sim_attend(1);
    }
    queue->items[queue->tail++] = item;
}

static void pop(sim_stream *stream) {
    stream->queue.head++;
    if (empty(stream)) {
        stream->queue.head = stream->queue.tail = 0;
        queued--;
        sim_attend(-1);
    }
}

void sim_item_release(sim_item *item) {
    if (item->work.destroy) {
        pthread_mutex_unlock(&sim_lock); /* destroying work may free device memory */
        item->work.destroy(item->work.context);
        pthread_mutex_lock(&sim_lock);
    }
    if (item->event) sim_event_drop(item->event);
    if (item->replay) sim_replay_free(item->replay);
    if (item->model) sim_model_drop(item->model);
    sim_clock_free(&item->moment);
}

static bool can_run(const sim_stream *stream) {
    if (empty(stream) || stream->running) return false;
    const sim_item *item = &stream->queue.items[stream->queue.head];
    if (item->turn && item->turn != turns_over + 1) return false;
    return item->kind == SIM_ITEM_REPLAY ? sim_replay_can_run(item->replay) : sim_wait_over(item);
}

/* Runs one item. The lock is released while work runs. */
static aclError run_item(sim_stream *stream, sim_item *item) {
    aclError error = ACL_SUCCESS;
    int64_t begin = sim_trace_begin();
    if (sim_checking && item->kind != SIM_ITEM_REPLAY) sim_act(sim_actor_of(stream), &item->moment, 0);
    switch (item->kind) {
    case SIM_ITEM_WORK:
        pthread_mutex_unlock(&sim_lock);
        error = item->work.run(item->work.context);
        pthread_mutex_lock(&sim_lock);
        sim_trace_end(stream, (sim_trace_event){.kind = SIM_TRACE_WORK, .name = item->work.name, .work = &item->work, .begin_ns = begin});
        return error;
    case SIM_ITEM_UPDATE: return sim_update_run(item);
    case SIM_ITEM_REPLAY: return sim_replay_run(item->replay);
    default:
        if (!sim_wait_over(item)) return SIM_BLOCKED;
        sim_run_mark(item);
        sim_trace_mark(stream, item, begin);
        return ACL_SUCCESS;
    }
}

/* Runs the queue as far as it can; in random order, its first item or the next task of its replay. */
static aclError run_queue(sim_stream *stream) {
    aclError first = ACL_SUCCESS;
    stream->running = true;
    stream->runner = pthread_self();
    while (!empty(stream)) {
        sim_item item = stream->queue.items[stream->queue.head]; /* a copy: the array may move while work runs */
        aclError error = run_item(stream, &item);
        if (error == SIM_BLOCKED || error == SIM_MORE) break;
        pop(stream);
        stream->timed_out = false;
        if (item.turn) turns_over++;
        sim_item_release(&item);
        if (error && !first) first = error;
        if (sim_random) break;
    }
    stream->running = false;
    pthread_cond_broadcast(&sim_changed);
    return first;
}

/* Nobody waits for the stream's work here: the next synchronisation reports its failure. */
static void run_aside(sim_stream *stream) {
    aclError error = run_queue(stream);
    if (!error || stream->error) return;
    stream->error = error;
    snprintf(stream->error_text, sizeof stream->error_text, "%s", sim_message());
}

void sim_pump_all(void) {
    bool progress = !sim_random;
    while (progress) {
        progress = false;
        for (sim_stream *stream = streams; stream; stream = stream->next) {
            if (!can_run(stream)) continue;
            run_aside(stream);
            progress = true;
        }
    }
}

bool sim_nothing_queued(void) { return queued == 0; }
bool sim_collectives_queued(void) { return turns_given != turns_over; }
uint64_t sim_host_moves(void) { return host_moves; }

bool sim_step(void) {
    if (!sim_is_device_thread()) host_moves++;
    sim_stream *able[64]; /* in the order in which they began to queue, which the program alone decides */
    size_t count = 0;
    for (sim_stream *stream = streams; stream && sim_random && count < 64; stream = stream->next) {
        if (!can_run(stream)) continue;
        size_t at = count++;
        for (; at > 0 && able[at - 1]->since > stream->since; at--) able[at] = able[at - 1];
        able[at] = stream;
    }
    if (count) run_aside(able[sim_random_below(count)]);
    return count > 0;
}

void sim_dawdle(void) {
    while (sim_random && sim_random_below(2) && sim_step()) continue;
}

/* Whether another thread runs queued work. */
static bool others_run(void) {
    bool busy = false;
    for (sim_stream *stream = streams; stream; stream = stream->next)
        busy |= stream->running && !pthread_equal(stream->runner, pthread_self());
    return busy;
}

void sim_finish(void) {
    while (sim_step() || (sim_random && others_run() && sim_sleep(NULL))) continue;
}

/* Errors of the item itself are returned if it runs now. */
aclError sim_enqueue(sim_stream *stream, sim_item item) {
    bool first = empty(stream) && !stream->running && !sim_random;
    if (sim_checking) item.moment = sim_host_moment();
    if (sim_random && (item.work.in_turn || (item.replay && item.replay->model->in_turn))) item.turn = ++turns_given;
    host_moves++;
    push(stream, item);
    if (item.turn) sim_progress_wanted();
    aclError error = first ? run_queue(stream) : ACL_SUCCESS;
    sim_pump_all();
    sim_dawdle();
    return error;
}

/* ---- waiting ---- */

/* What the head of a stream's queue waits for. Events are named as torch_npu prints them: by their handle. */
static void describe(const sim_stream *stream, char *text, size_t size) {
    const sim_item *item = &stream->queue.items[stream->queue.head], *wait = item;
    if (item->kind == SIM_ITEM_REPLAY) wait = sim_replay_next(item->replay);
    const void *event = !wait ? NULL : wait->event ? (const void *)wait->event : (const void *)wait->address;
    if (item->kind == SIM_ITEM_REPLAY)
        snprintf(text, size, "a replay of graph %u on stream %d is suspended at task %zu of %zu, which waits for event %p",
                 item->replay->model->id, stream->id, item->replay->position, item->replay->model->count, event);
    else snprintf(text, size, "stream %d waits for event %p", stream->id, event);
}

aclError sim_wait(sim_condition ready, void *argument, sim_stream *stream, const char *what) {
    double timeout = stream && stream->timed_out ? 0 : sim_event_timeout_s();
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += (time_t)timeout;
    deadline.tv_nsec += (long)((timeout - (double)(time_t)timeout) * 1e9);
    if (deadline.tv_nsec >= 1000000000L) deadline.tv_sec++, deadline.tv_nsec -= 1000000000L;
    sim_pump_all();
    while (!ready(argument)) {
        if (sim_step()) continue;
        if (others_run()) { /* they will signal */
            sim_sleep(NULL);
        } else if (!sim_sleep(&deadline) && !ready(argument)) {
            char reason[400] = "nothing is queued";
            for (sim_stream *other = stream ? stream : streams; other; other = stream ? NULL : other->next) {
                if (empty(other)) continue;
                describe(other, reason, sizeof reason);
                other->timed_out = true;
                break;
            }
            return sim_fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                            "%s would never return: %s, and nothing recorded it for %.1f s. Record it, for example after the "
                            "task update it guards (ASCEND_SIM_EVENT_TIMEOUT)", what, reason, sim_event_timeout_s());
        }
        sim_pump_all();
    }
    return ACL_SUCCESS;
}

static bool is_drained(void *stream) { return empty(stream) && !((sim_stream *)stream)->running; }

aclError sim_drain(sim_stream *stream) {
    if (stream->running && pthread_equal(stream->runner, pthread_self()))
        return sim_fail(ACL_ERROR_RT_STREAM_CONTEXT, "stream %d is synchronised by work that runs on it", stream->id);
    aclError error = is_drained(stream) ? ACL_SUCCESS : sim_wait(is_drained, stream, stream, "synchronisation");
    if (!error && sim_checking) sim_host_joins(sim_actor_clock(sim_actor_of(stream)));
    if (!error && stream->error) {
        error = stream->error;
        sim_report(stream->error_text);
        stream->error = ACL_SUCCESS;
    }
    return error;
}

static aclError synchronize(sim_stream *stream, const char *why) {
    if (stream->capture)
        return sim_fail(ACL_ERROR_RT_STREAM_CAPTURED, "%s is not permitted while stream %d is capturing", why, stream->id);
    return sim_drain(stream);
}

int sim_stream_drain(void *handle, const char *why) {
    pthread_mutex_lock(&sim_lock);
    aclError error = synchronize(sim_stream_of(handle), why);
    pthread_mutex_unlock(&sim_lock);
    return sim_host_has_waited(error);
}

/* ---- submission ---- */

sim_mode sim_stream_mode(void *handle) {
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(handle);
    sim_mode mode = stream->update ? SIM_UPDATES
                    : stream->capture ? SIM_CAPTURES
                    : empty(stream) && !stream->running && !sim_random ? SIM_RUNS
                                                        : SIM_QUEUES;
    /* Work that runs on the stream submits in its name: a reference that calls other operators. */
    if (mode == SIM_QUEUES && stream->running && pthread_equal(stream->runner, pthread_self())) mode = SIM_RUNS;
    pthread_mutex_unlock(&sim_lock);
    return mode;
}

int sim_submit(void *handle, sim_work work) {
    sim_item item = {.kind = SIM_ITEM_WORK, .work = work};
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(handle);
    aclError error;
    if (stream->update) error = sim_update_item(stream, item);
    else if (stream->capture) error = sim_capture_item(stream->capture, stream, item);
    else error = sim_enqueue(stream, item);
    pthread_mutex_unlock(&sim_lock);
    return error;
}

/* ---- ACL calls ---- */

/* aclrtCreateStream, aclrtCreateStreamWithConfig: a stream of the current device. */
aclError aclrtCreateStream(aclrtStream *stream) {
    *stream = create(sim_current_device());
    return ACL_SUCCESS;
}
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag) {
    (void)priority, (void)flag;
    return aclrtCreateStream(stream);
}

/* aclrtDestroyStream(Force): drops what is still queued; in random order it is finished first. */
aclError aclrtDestroyStream(aclrtStream handle) {
    sim_stream *stream = handle;
    pthread_mutex_lock(&sim_lock);
    sim_finish();
    for (sim_stream **link = &streams; *link; link = &(*link)->next)
        if (*link == stream) {
            *link = stream->next;
            break;
        }
    while (!empty(stream)) {
        sim_item item = stream->queue.items[stream->queue.head];
        pop(stream);
        if (item.turn) turns_over++;
        sim_item_release(&item);
    }
    sim_actor_drop(stream->actor);
    pthread_mutex_unlock(&sim_lock);
    free(stream->queue.items);
    free(stream);
    return ACL_SUCCESS;
}
aclError aclrtDestroyStreamForce(aclrtStream stream) { return aclrtDestroyStream(stream); }

/* aclrtSynchronizeStream(WithTimeout): waits for the stream's work; the simulation's own timeout applies. */
aclError aclrtSynchronizeStream(aclrtStream stream) { return sim_stream_drain(stream, "synchronising a stream"); }
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout_ms) {
    (void)timeout_ms;
    return aclrtSynchronizeStream(stream);
}

/* aclrtSynchronizeDevice(WithTimeout): waits for all streams of the current device. */
aclError aclrtSynchronizeDevice(void) {
    if (sim_capture_forbids())
        return sim_fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "synchronising the device is not permitted while a stream is capturing");
    aclError error = ACL_SUCCESS;
    pthread_mutex_lock(&sim_lock);
    for (sim_stream *stream = streams; stream && !error; stream = stream->next)
        if (stream->device == sim_current_device() && !stream->capture) error = sim_drain(stream);
    pthread_mutex_unlock(&sim_lock);
    return sim_host_has_waited(error);
}
aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout_ms) {
    (void)timeout_ms;
    return aclrtSynchronizeDevice();
}

/* aclrtStreamQuery: whether all work of the stream has run. */
aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus *status) {
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(handle);
    sim_dawdle();
    bool drained = is_drained(stream);
    if (drained && sim_checking) sim_host_joins(sim_actor_clock(sim_actor_of(stream)));
    *status = drained ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    pthread_mutex_unlock(&sim_lock);
    return sim_host_has_waited(ACL_SUCCESS);
}

/* aclrtStreamGetId. */
aclError aclrtStreamGetId(aclrtStream handle, int32_t *id) {
    pthread_mutex_lock(&sim_lock);
    *id = sim_stream_of(handle)->id;
    pthread_mutex_unlock(&sim_lock);
    return ACL_SUCCESS;
}

/* Attributes that steer hardware error handling and profiling; accepted without effect. */
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
    (void)stream, (void)mode;
    return ACL_SUCCESS;
}
aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr attribute, aclrtStreamAttrValue *value) {
    (void)stream, (void)attribute, (void)value;
    return ACL_SUCCESS;
}
aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag) {
    (void)stream;
    *flag = 0;
    return ACL_SUCCESS;
}
aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
    (void)stream, (void)flag;
    return ACL_SUCCESS;
}
