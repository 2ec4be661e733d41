/* Graphs: capture, replay, task groups and their update.
 *
 * As on hardware, captured work does not run while it is captured. A replay runs its tasks in order, in the thread that
 * launches it, with the parameters they have when each task's turn comes; at a wait for an external event that is not
 * recorded it is suspended and continues in the thread that records the event. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

sim_counters sim_counts;

static sim_model *capturing; /* list */
static atomic_int captures;
static atomic_uint next_id = 1;
static __thread aclmdlRICaptureMode thread_mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;

static void (*observe)(const char *name);
static bool skip;

void sim_observe_tasks(void (*observer)(const char *)) { observe = observer; }
void sim_skip_tasks(int on) { skip = on != 0; }
sim_counters sim_read_counters(void) { return sim_counts; }

bool sim_capture_forbids(void) {
    if (!captures || thread_mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) return false;
    bool forbidden = false;
    pthread_mutex_lock(&sim_lock);
    for (sim_model *model = capturing; model; model = model->next) {
        bool mine = pthread_equal(model->thread, pthread_self());
        if (model->mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && thread_mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) forbidden = true;
        if (mine && model->mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED) forbidden = true;
    }
    pthread_mutex_unlock(&sim_lock);
    return forbidden;
}

/* ---- capture ---- */

bool sim_is_capturing(const sim_model *model, uint32_t id) {
    const sim_model *found = capturing;
    while (found && found != model) found = found->next;
    return found && found->id == id; /* another graph may live at the address of one that was destroyed */
}

static int lane_of(sim_model *model, sim_stream *stream) {
    for (int i = 0; i < model->lane_count; i++)
        if (model->lanes[i].stream == stream) return i;
    model->lanes = realloc(model->lanes, (size_t)(model->lane_count + 1) * sizeof *model->lanes);
    model->lanes[model->lane_count] = (sim_lane){stream, stream->id, 0};
    return model->lane_count++;
}

static void append(sim_model *model, sim_stream *stream, sim_item item) {
    item.lane = lane_of(model, stream);
    if (model->count == model->capacity) {
        model->capacity = model->capacity ? 2 * model->capacity : 64;
        model->items = realloc(model->items, model->capacity * sizeof *model->items);
    }
    model->items[model->count++] = item;
}

aclError sim_capture_item(sim_model *model, sim_stream *stream, sim_item item) {
    append(model, stream, item);
    stream->captured++;
    model->in_turn |= item.work.in_turn;
    return ACL_SUCCESS;
}

void sim_capture_event(sim_model *model, sim_stream *stream, sim_item_kind kind, size_t mark) {
    append(model, stream, (sim_item){.kind = kind, .mark = mark});
}

/* aclmdlRICaptureBegin: from here on the stream's work is recorded. */
aclError aclmdlRICaptureBegin(aclrtStream handle, aclmdlRICaptureMode mode) {
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(handle);
    aclError error = ACL_SUCCESS;
    if (stream->capture) {
        error = sim_fail(ACL_ERROR_RT_STREAM_CAPTURED, "stream %d is capturing already", stream->id);
    } else {
        sim_model *model = calloc(1, sizeof *model);
        model->id = next_id++;
        model->references = 1;
        model->device = stream->device;
        model->origin = stream;
        model->mode = mode;
        model->thread = pthread_self();
        model->next = capturing;
        capturing = model;
        captures++;
        stream->capture = model;
        stream->captured = stream->joined = 0;
        lane_of(model, stream);
        sim_attend(1);
    }
    pthread_mutex_unlock(&sim_lock);
    return error;
}

/* aclmdlRICaptureEnd: returns the graph. Streams that joined the capture must have been waited for again. */
aclError aclmdlRICaptureEnd(aclrtStream handle, aclmdlRI *result) {
    pthread_mutex_lock(&sim_lock);
    sim_stream *origin = sim_stream_of(handle);
    sim_model *model = origin->capture;
    if (!model || model->origin != origin) {
        pthread_mutex_unlock(&sim_lock);
        return sim_fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, "stream %d did not begin a capture", origin->id);
    }
    aclError error = ACL_SUCCESS;
    for (sim_stream *stream = sim_streams(); stream; stream = stream->next) {
        if (stream->capture != model) continue;
        if (stream != origin && stream->joined < stream->captured)
            error = sim_fail(ACL_ERROR_RT_STREAM_UNJOINED,
                             "the capture ends while stream %d still has captured work that no stream of the capture waited for",
                             stream->id);
        stream->capture = NULL;
        sim_attend(-1);
    }
    if (model->open) {
        error = sim_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "the capture ends inside a task group");
        free(model->open);
        model->open = NULL;
    }
    for (sim_model **link = &capturing; *link; link = &(*link)->next)
        if (*link == model) {
            *link = model->next;
            break;
        }
    captures--;
    model->origin = NULL;
    for (int i = 0; i < model->lane_count; i++) model->lanes[i].stream = NULL;
    *result = model;
    pthread_mutex_unlock(&sim_lock);
    return error;
}

/* aclmdlRICaptureGetInfo: whether a stream is capturing, and into which graph. */
aclError aclmdlRICaptureGetInfo(aclrtStream handle, aclmdlRICaptureStatus *status, aclmdlRI *model) {
    sim_model *capture = NULL;
    if (captures) {
        pthread_mutex_lock(&sim_lock);
        capture = sim_stream_of(handle)->capture;
        pthread_mutex_unlock(&sim_lock);
    }
    *status = capture ? ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE : ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    if (model) *model = capture;
    return ACL_SUCCESS;
}

/* aclmdlRICaptureThreadExchangeMode: how strictly captures forbid unsafe calls in this thread. */
aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode) {
    aclmdlRICaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return ACL_SUCCESS;
}

void sim_model_drop(sim_model *model) {
    if (--model->references) return;
    sim_item *items = model->items;
    size_t count = model->count;
    while (model->groups) {
        sim_task_group *group = model->groups;
        for (sim_stream *stream = sim_streams(); stream; stream = stream->next)
            if (stream->update == group) stream->update = NULL, sim_attend(-1); /* an update that failed and never ended */
        model->groups = group->next;
        free(group);
    }
    for (int i = 0; i < model->lane_count; i++) sim_actor_drop(model->lanes[i].actor);
    free(model->lanes);
    sim_history_clear(&model->tasks);
    for (size_t i = 0; i < count; i++) sim_item_release(&items[i]);
    free(items);
    free(model);
}

/* aclmdlRIDestroy: frees the graph's tasks once no replay of it is under way. */
aclError aclmdlRIDestroy(aclmdlRI model) {
    pthread_mutex_lock(&sim_lock);
    sim_model_drop(model);
    pthread_mutex_unlock(&sim_lock);
    return ACL_SUCCESS;
}

/* aclmdlRIGetId. */
aclError aclmdlRIGetId(aclmdlRI model, uint32_t *id) {
    *id = ((sim_model *)model)->id;
    return ACL_SUCCESS;
}

/* aclmdlRIDebugJsonPrint: the graph's tasks, one JSON object a line. */
aclError aclmdlRIDebugJsonPrint(aclmdlRI handle, const char *path, uint32_t flags) {
    (void)flags;
    static const char *const kinds[] = {"task", "record", "wait", "reset", "replay", "write value", "wait for value",
                                        "update", "mark", "join"};
    sim_model *model = handle;
    FILE *file = fopen(path, "w");
    if (!file) return sim_fail(ACL_ERROR_RT_FILE_OPEN, "cannot write %s", path);
    for (size_t i = 0; i < model->count; i++) {
        const sim_item *item = &model->items[i];
        fprintf(file, "{\"index\": %zu, \"kind\": \"%s\", \"name\": \"%s\"}\n", i, kinds[item->kind],
                item->kind == SIM_ITEM_WORK ? item->work.name : "");
    }
    fclose(file);
    return ACL_SUCCESS;
}

/* ---- replay ---- */

static sim_replay *launch(sim_model *model, sim_stream *stream) {
    sim_replay *replay = calloc(1, sizeof *replay);
    model->references++;
    replay->model = model;
    replay->stream = stream;
    replay->marks = calloc(model->marks + 1, sizeof *replay->marks);
    replay->next = malloc((size_t)model->lane_count * sizeof *replay->next);
    for (int lane = 0; lane < model->lane_count; lane++)
        for (replay->next[lane] = 0; replay->next[lane] < model->count && model->items[replay->next[lane]].lane != lane;) replay->next[lane]++;
    if (sim_checking) replay->moment = sim_host_moment();
    return replay;
}

void sim_replay_free(sim_replay *replay) {
    for (size_t i = 0; i <= replay->model->marks; i++) sim_clock_free(&replay->marks[i].clock);
    sim_clock_free(&replay->moment);
    free(replay->marks);
    free(replay->next);
    sim_model_drop(replay->model);
    free(replay);
}

const sim_item *sim_replay_next(const sim_replay *replay) {
    return replay->position < replay->model->count ? &replay->model->items[replay->position] : NULL;
}

/* In random order: whether the next item of a lane may run. */
static bool lane_can_run(const sim_replay *replay, int lane) {
    const sim_model *model = replay->model;
    size_t index = replay->next[lane];
    if (index == model->count) return false;
    const sim_item *item = &model->items[index];
    if (item->kind == SIM_ITEM_JOIN) return replay->marks[item->mark].reached;
    for (size_t i = 0; item->work.in_turn && i < index; i++)
        if (model->items[i].work.in_turn && i >= replay->next[model->items[i].lane]) return false;
    return sim_wait_over(item);
}

bool sim_replay_can_run(const sim_replay *replay) {
    const sim_item *next = sim_replay_next(replay);
    if (!sim_random || !next) return !next || sim_wait_over(next);
    for (int lane = 0; lane < replay->model->lane_count; lane++)
        if (lane_can_run(replay, lane)) return true;
    return false;
}

static void free_retired(sim_model *model) {
    sim_work *retired = model->retired;
    size_t count = model->retired_count;
    model->retired = NULL;
    model->retired_count = 0;
    pthread_mutex_unlock(&sim_lock);
    for (size_t i = 0; i < count; i++) retired[i].destroy(retired[i].context);
    free(retired);
    pthread_mutex_lock(&sim_lock);
}

/* The parameters of a task are memory that updates write and replays read. */
static aclError use_task(sim_model *model, size_t index, bool writes) {
    const sim_access access = {.address = (const void *)(index + 1), .item_size = 1, .writes = writes,
                               .storage = (const void *)(uintptr_t)model->id};
    return sim_checking ? sim_history_use(&model->tasks, &access, model->items[index].work.name) : ACL_SUCCESS;
}

static aclError run_task(const sim_replay *replay, size_t index) {
    sim_model *model = replay->model;
    sim_work work = model->items[index].work;
    aclError error = use_task(model, index, false);
    if (error) return error;
    model->executing++;
    sim_trace_event task = {.kind = SIM_TRACE_WORK, .name = work.name, .work = &work, .graph = model->id, .task = index,
                            .begin_ns = sim_trace_begin()};
    pthread_mutex_unlock(&sim_lock);
    error = work.run(work.context);
    pthread_mutex_lock(&sim_lock);
    sim_trace_end(replay->stream, task);
    if (--model->executing == 0 && model->retired) free_retired(model);
    return error;
}

static int actor_of_lane(const sim_replay *replay, int lane) {
    if (lane == 0) return sim_actor_of(replay->stream);
    sim_lane *captured = &replay->model->lanes[lane];
    if (!captured->actor)
        captured->actor = sim_actor_new("stream %d of the capture of graph %u", captured->stream_id, replay->model->id);
    return captured->actor;
}

static void run_captured(sim_replay *replay, size_t index) {
    sim_model *model = replay->model;
    const sim_item item = model->items[index]; /* a copy: the lock is released while work runs */
    sim_mark *mark = &replay->marks[item.mark];
    if (sim_checking) sim_act(actor_of_lane(replay, item.lane), &replay->moment, model->id);
    sim_clock *clock = sim_checking ? sim_actor_clock(sim_here().actor) : NULL;
    if (item.kind == SIM_ITEM_MARK) {
        mark->reached = true;
        if (clock) sim_clock_set(&mark->clock, clock);
    } else if (item.kind == SIM_ITEM_JOIN) {
        if (clock) sim_clock_join(clock, &mark->clock);
    } else if (item.kind == SIM_ITEM_WORK) {
        sim_counts.graph_tasks++;
        if (observe) observe(item.work.name);
        if (!skip && !replay->error) replay->error = run_task(replay, index); /* after a failure the gates keep their order */
    } else {
        int64_t begin = sim_trace_begin();
        sim_run_mark(&item);
        sim_trace_mark(replay->stream, &item, begin);
    }
}

/* The replay is over when all its streams are. */
static aclError end_replay(sim_replay *replay) {
    for (int lane = 1; sim_checking && lane < replay->model->lane_count; lane++) {
        int captured = actor_of_lane(replay, lane), origin = actor_of_lane(replay, 0);
        sim_clock_join(sim_actor_clock(origin), sim_actor_clock(captured));
    }
    return replay->error;
}

static aclError step_at_random(sim_replay *replay) {
    const sim_model *model = replay->model;
    size_t count = 0;
    for (int lane = 0; lane < model->lane_count; lane++) count += lane_can_run(replay, lane);
    if (count) {
        size_t chosen = sim_random_below(count);
        int lane = 0;
        while (!lane_can_run(replay, lane) || chosen-- > 0) lane++;
        run_captured(replay, replay->next[lane]);
        while (++replay->next[lane] < model->count && model->items[replay->next[lane]].lane != lane) continue;
    }
    replay->position = model->count;
    for (int lane = 0; lane < model->lane_count; lane++)
        if (replay->next[lane] < replay->position) replay->position = replay->next[lane];
    if (replay->position == model->count) return end_replay(replay);
    if (!count) sim_counts.suspensions++;
    return count ? SIM_MORE : SIM_BLOCKED;
}

aclError sim_replay_run(sim_replay *replay) {
    if (sim_random) return step_at_random(replay);
    sim_trace_event whole = {.kind = SIM_TRACE_REPLAY, .graph = replay->model->id, .task = replay->position, .begin_ns = sim_trace_begin()};
    bool blocked = false;
    for (; !blocked && replay->position < replay->model->count; replay->position += !blocked) {
        blocked = !sim_wait_over(&replay->model->items[replay->position]);
        if (!blocked) run_captured(replay, replay->position);
    }
    whole.tasks = replay->position;
    sim_trace_end(replay->stream, whole);
    if (!blocked) return end_replay(replay);
    sim_counts.suspensions++;
    return SIM_BLOCKED;
}

/* aclmdlRIExecuteAsync: launches a graph on a stream. */
aclError aclmdlRIExecuteAsync(aclmdlRI handle, aclrtStream stream_handle) {
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(stream_handle);
    aclError error;
    if (stream->capture) {
        error = sim_fail(ACL_ERROR_RT_STREAM_CAPTURED, "a graph cannot be replayed on stream %d while it is capturing", stream->id);
    } else {
        sim_counts.replays++;
        error = sim_enqueue(stream, (sim_item){.kind = SIM_ITEM_REPLAY, .replay = launch(handle, stream)});
    }
    pthread_mutex_unlock(&sim_lock);
    return error == SIM_BLOCKED ? ACL_SUCCESS : error;
}

/* ---- task groups ---- */

/* aclmdlRICaptureTaskGrpBegin / End: the tasks captured in between can be updated later. */
aclError aclmdlRICaptureTaskGrpBegin(aclrtStream handle) {
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(handle);
    sim_model *model = stream->capture;
    aclError error = ACL_SUCCESS;
    if (!model) {
        error = sim_fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "a task group begins on stream %d, which is not capturing", stream->id);
    } else if (model->open) {
        error = sim_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "a task group begins inside another");
    } else {
        model->open = calloc(1, sizeof *model->open);
        *model->open = (sim_task_group){.model = model, .begin = model->count};
    }
    pthread_mutex_unlock(&sim_lock);
    return error;
}
aclError aclmdlRICaptureTaskGrpEnd(aclrtStream handle, aclrtTaskGrp *result) {
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(handle);
    sim_model *model = stream->capture;
    aclError error = ACL_SUCCESS;
    if (!model || !model->open) {
        error = sim_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "a task group ends on stream %d, but none was begun", stream->id);
    } else {
        sim_task_group *group = model->open;
        model->open = NULL;
        group->end = model->count;
        group->next = model->groups;
        model->groups = group;
        *result = group;
    }
    pthread_mutex_unlock(&sim_lock);
    return error;
}

/* aclmdlRICaptureTaskUpdateBegin / End: work submitted to the stream in between replaces the group's tasks, in order. */
aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream handle, aclrtTaskGrp group) {
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(handle);
    aclError error = ACL_SUCCESS;
    if (stream->update || stream->capture) {
        error = sim_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "stream %d is %s already", stream->id, stream->capture ? "capturing" : "updating");
    } else {
        stream->update = group;
        stream->update_next = stream->update->begin;
        sim_attend(1);
    }
    pthread_mutex_unlock(&sim_lock);
    return error;
}
aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream handle) {
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(handle);
    aclError error = ACL_SUCCESS;
    if (!stream->update) {
        error = sim_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "an update ends on stream %d, but none was begun", stream->id);
    } else {
        stream->update = NULL;
        sim_attend(-1);
        sim_counts.task_updates++;
    }
    pthread_mutex_unlock(&sim_lock);
    return error;
}

aclError sim_update_item(sim_stream *stream, sim_item item) {
    sim_task_group *group = stream->update;
    sim_model *model = group->model;
    while (stream->update_next < group->end && model->items[stream->update_next].kind != SIM_ITEM_WORK) stream->update_next++;
    if (stream->update_next == group->end)
        return sim_fail(ACL_ERROR_RT_MODEL_UPDATE_FAILED, "the update has more tasks than the captured group: %s", item.work.name);
    sim_item *task = &model->items[stream->update_next];
    if (strcmp(task->work.name, item.work.name))
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP, "the update submits %s where %s was captured", item.work.name,
                        task->work.name);
    model->references++;
    return sim_enqueue(stream, (sim_item){.kind = SIM_ITEM_UPDATE, .model = model, .index = stream->update_next++, .work = item.work});
}

aclError sim_update_run(sim_item *item) {
    sim_model *model = item->model;
    aclError error = use_task(model, item->index, true);
    if (error) return error;
    sim_work old = model->items[item->index].work;
    model->items[item->index].work = item->work;
    item->work = old;
    if (!model->executing) return ACL_SUCCESS;
    model->retired = realloc(model->retired, (model->retired_count + 1) * sizeof *model->retired);
    model->retired[model->retired_count++] = old;
    item->work.destroy = NULL;
    return ACL_SUCCESS;
}
