/* The tasks of graphs: how they run, groups of tasks, and updates that replace the tasks of a group. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void (*observe)(const char *name);
static bool skip;

void sim_observe_tasks(void (*observer)(const char *)) { observe = observer; }
void sim_skip_tasks(int on) { skip = on != 0; }

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

aclError sim_task_run(const sim_replay *replay, size_t index) {
    sim_model *model = replay->model;
    sim_work work = model->items[index].work;
    sim_counts.graph_tasks++;
    if (observe) observe(work.name);
    if (skip || replay->error) return replay->error; /* after a failure the gates keep their order */
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
