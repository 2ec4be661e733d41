/* Replays. A replay runs its graph's tasks in order, in the thread that launches it, with the parameters they have when
 * each task's turn comes; at a wait for an external event that is not recorded it is suspended and continues in the thread
 * that records the event. In random order the streams of the graph take turns. */
#include <stdlib.h>

#include "sim.h"

sim_counters sim_counts;

sim_counters sim_read_counters(void) { return sim_counts; }

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
        replay->error = sim_task_run(replay, index);
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

/* Whether all tasks may be replayed. Those of groups are not asked: an update may be on its way. The others never change. */
static aclError may_replay(const sim_model *model) {
    static atomic_ullong launches;
    const uint64_t number = ++launches;
    aclError error = ACL_SUCCESS;
    for (size_t i = 0; i < model->count && !error; i++) {
        const sim_item *item = &model->items[i];
        if (!item->grouped && item->work.may_replay) error = item->work.may_replay(item->work.context, number);
    }
    return error;
}

/* aclmdlRIExecuteAsync: launches a graph on a stream. */
aclError aclmdlRIExecuteAsync(aclmdlRI handle, aclrtStream stream_handle) {
    aclError error = may_replay(handle);
    if (error) return error;
    pthread_mutex_lock(&sim_lock);
    sim_stream *stream = sim_stream_of(stream_handle);
    if (stream->capture) {
        error = sim_fail(ACL_ERROR_RT_STREAM_CAPTURED, "a graph cannot be replayed on stream %d while it is capturing", stream->id);
    } else {
        sim_counts.replays++;
        error = sim_enqueue(stream, (sim_item){.kind = SIM_ITEM_REPLAY, .replay = launch(handle, stream)});
    }
    pthread_mutex_unlock(&sim_lock);
    return error == SIM_BLOCKED ? ACL_SUCCESS : error;
}
