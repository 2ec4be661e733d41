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

aclError sim_capture_item(sim_model *model, sim_stream *stream, sim_item item) {
    if (model->count == model->capacity) {
        model->capacity = model->capacity ? 2 * model->capacity : 64;
        model->items = realloc(model->items, model->capacity * sizeof *model->items);
    }
    model->items[model->count++] = item;
    stream->captured++;
    return ACL_SUCCESS;
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
        model->groups = group->next;
        free(group);
    }
    for (size_t i = 0; i < count; i++) {
        if (items[i].kind != SIM_ITEM_WORK) {
            sim_item_release(&items[i]);
            continue;
        }
        pthread_mutex_unlock(&sim_lock); /* destroying work may free device memory */
        if (items[i].work.destroy) items[i].work.destroy(items[i].work.context);
        pthread_mutex_lock(&sim_lock);
    }
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
    static const char *const kinds[] = {"task", "record", "wait", "reset", "replay", "write value", "wait for value"};
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

const sim_item *sim_replay_next(const sim_replay *replay) {
    return replay->position < replay->model->count ? &replay->model->items[replay->position] : NULL;
}

bool sim_replay_can_run(const sim_replay *replay) {
    const sim_item *next = sim_replay_next(replay);
    return !next || sim_wait_over(next);
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

aclError sim_replay_run(sim_replay *replay) {
    sim_model *model = replay->model;
    aclError error = ACL_SUCCESS;
    for (; replay->position < model->count; replay->position++) {
        sim_item *item = &model->items[replay->position];
        if (!sim_wait_over(item)) {
            sim_counts.suspensions++;
            return SIM_BLOCKED;
        }
        if (item->kind == SIM_ITEM_RECORD) sim_event_complete(item->event);
        if (item->kind == SIM_ITEM_RESET) item->event->recorded = false;
        if (item->kind == SIM_ITEM_WRITE_VALUE) sim_write_value(item);
        if (item->kind != SIM_ITEM_WORK) continue;
        sim_counts.graph_tasks++;
        sim_work work = item->work;
        if (observe) observe(work.name);
        if (skip || error) continue; /* after a failure nothing runs, but the gates keep their order */
        model->executing++;
        pthread_mutex_unlock(&sim_lock);
        error = work.run(work.context);
        pthread_mutex_lock(&sim_lock);
        if (--model->executing == 0 && model->retired) free_retired(model);
    }
    return error;
}

/* aclmdlRIExecuteAsync: launches a graph on a stream. */
aclError aclmdlRIExecuteAsync(aclmdlRI handle, aclrtStream stream_handle) {
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(stream_handle);
    aclError error;
    if (stream->capture) {
        error = sim_fail(ACL_ERROR_RT_STREAM_CAPTURED, "a graph cannot be replayed on stream %d while it is capturing", stream->id);
    } else {
        sim_model *model = handle;
        model->references++;
        sim_counts.replays++;
        sim_replay *replay = malloc(sizeof *replay);
        *replay = (sim_replay){model, 0};
        error = sim_enqueue(stream, (sim_item){.kind = SIM_ITEM_REPLAY, .replay = replay});
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
    stream->update_next++;
    sim_work old = task->work;
    task->work = item.work;
    if (model->executing) {
        model->retired = realloc(model->retired, (model->retired_count + 1) * sizeof *model->retired);
        model->retired[model->retired_count++] = old;
        return ACL_SUCCESS;
    }
    pthread_mutex_unlock(&sim_lock); /* destroying work may free device memory */
    old.destroy(old.context);
    pthread_mutex_lock(&sim_lock);
    return ACL_SUCCESS;
}
