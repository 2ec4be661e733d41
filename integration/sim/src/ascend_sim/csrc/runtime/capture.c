/* Capture: from aclmdlRICaptureBegin to -End a stream's work is recorded into a graph and does not run. Streams that wait
 * for an event of the capture join it. */
#include <stdlib.h>

#include "sim.h"

static sim_model *capturing; /* list */
static atomic_int captures;
static atomic_uint next_id = 1;
static __thread aclmdlRICaptureMode thread_mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;

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
    item.grouped = model->open;
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
