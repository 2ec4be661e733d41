/* Graphs as objects: their number, their tasks as JSON, their end. */
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

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
