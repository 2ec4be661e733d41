/* Who used which memory last, and whether the next use is ordered after it.
 *
 * Memory is known by address, so that a block which the allocator hands on carries its past with it. A use stays noted
 * until a later one that is ordered after it makes it superfluous, or until the host has waited for it: whatever is
 * submitted from then on comes later. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define SHAPE_DIMS 6

struct sim_use {
    sim_footprint footprint;
    sim_place place;
    bool writes, fresh;
    const char *name;   /* of the operator */
    const char *type;   /* of the elements, or NULL: a task of a graph */
    const void *storage;
    size_t storage_size;
    int dims;
    int64_t sizes[SHAPE_DIMS];
};

typedef struct {
    char *start;
    size_t size;
    bool pinned; /* host memory that copies use while the host goes on */
    sim_history history;
} block;

static block *blocks; /* by address */
static size_t block_count, block_capacity;
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- messages ---- */

static void describe_tensor(const sim_use *use, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "%s[", use->type);
    for (int i = 0; i < use->dims && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "", (long long)use->sizes[i]);
    size_t offset = (size_t)(use->footprint.start - (uintptr_t)use->storage);
    if (used < size) snprintf(text + used, size - used, "] at byte %zu of the storage at %p", offset, use->storage);
}

static void describe_operator(const sim_use *use, char *text, size_t size) {
    if (use->place.graph) snprintf(text, size, "%s (in graph %u) on %s", use->name, use->place.graph, sim_actor_name(use->place.actor));
    else snprintf(text, size, "%s on %s", use->name, sim_actor_name(use->place.actor));
}

static aclError conflict(const sim_use *before, const sim_use *now) {
    char first[200], second[200], range[200], other[200], remedy[400];
    describe_operator(before, first, sizeof first);
    describe_operator(now, second, sizeof second);
    if (!now->type)
        return sim_fail(ACL_ERROR_RT_MODEL_EXECUTE,
                        "unordered: %s %s a task of graph %u, and earlier %s %s it; nothing orders the two. Let the graph wait for an "
                        "external event that is recorded behind the update, and the next update for the replay before "
                        "it; or update on the stream that replays",
                        second, now->writes ? "updates" : "runs", (unsigned)(uintptr_t)now->storage, first, before->writes ? "updates" : "runs");
    describe_tensor(now, range, sizeof range);
    describe_tensor(before, other, sizeof other);
    const char *late = sim_actor_name(now->place.actor), *early = sim_actor_name(before->place.actor);
    if (now->fresh || now->storage != before->storage || now->storage_size != before->storage_size)
        snprintf(remedy, sizeof remedy,
                 "The memory was freed and handed out again while it was in use: call tensor.record_stream(stream) for each "
                 "other stream that uses a tensor, or keep it until they are waited for");
    else
        snprintf(remedy, sizeof remedy, "Record an event on %s behind %s and let %s wait for it before %s, or synchronise", early,
                 before->name, late, now->name);
    return sim_fail(ACL_ERROR_RT_MODEL_EXECUTE, "unordered: %s %s %s, and earlier %s %s %s; nothing orders the two. %s", second,
                    now->writes ? "writes" : "reads", range, first, before->writes ? "writes" : "reads", other, remedy);
}

/* ---- histories ---- */

static void add(sim_history *history, const sim_use *use) {
    if (history->count == history->capacity) {
        history->capacity = history->capacity ? 2 * history->capacity : 8;
        history->uses = realloc(history->uses, history->capacity * sizeof *history->uses);
    }
    history->uses[history->count++] = *use;
}

static bool known_to(int actor, const sim_place *place) {
    const sim_clock *clock = sim_actor_clock(actor);
    return (size_t)place->actor < clock->count && clock->at[place->actor] >= place->epoch;
}

/* Takes the bytes of a dense use that `now` overwrites out of it; what is left behind them is added as another use. */
static void trim(sim_history *history, size_t index, const sim_footprint *now) {
    sim_footprint *old = &history->uses[index].footprint;
    if (now->end < old->end && old->start < now->start) {
        sim_use rest = history->uses[index];
        rest.footprint.start = now->end;
        rest.footprint.run = rest.footprint.end - now->end;
        old->end = now->start;
        old->run = old->end - old->start;
        add(history, &rest);
        return;
    }
    if (now->start <= old->start) old->start = now->end;
    else old->end = now->start;
    old->run = old->end - old->start;
}

int sim_history_use(sim_history *history, const sim_access *access, const char *name) {
    sim_use now = {.footprint = sim_footprint_of(access), .place = sim_here(), .writes = access->writes, .fresh = access->fresh, .name = name,
                   .type = access->type, .storage = access->storage, .storage_size = access->storage_size};
    if (now.footprint.start == now.footprint.end) return ACL_SUCCESS;
    now.dims = access->dims < SHAPE_DIMS ? access->dims : SHAPE_DIMS;
    if (now.dims) memcpy(now.sizes, access->sizes, (size_t)now.dims * sizeof *now.sizes);
    const bool settled = sim_nothing_queued(); /* queued work was submitted when the host knew less */
    for (size_t i = 0; i < history->count; i++) {
        sim_use *use = &history->uses[i];
        bool superfluous = settled && known_to(SIM_HOST, &use->place);
        if (!superfluous && use->footprint.start < now.footprint.end && now.footprint.start < use->footprint.end) {
            bool ordered = known_to(now.place.actor, &use->place);
            if (!ordered && (use->writes || now.writes) && sim_footprints_meet(&use->footprint, &now.footprint))
                return conflict(use, &now);
            bool replaces = ordered && (now.writes || (!use->writes && use->place.actor == now.place.actor));
            superfluous = replaces && sim_footprint_covers(&now.footprint, &use->footprint);
            if (replaces && !superfluous && !now.footprint.dims && !use->footprint.dims) trim(history, i, &now.footprint);
        }
        if (superfluous) history->uses[i--] = history->uses[--history->count];
    }
    if (now.place.actor != SIM_HOST) add(history, &now); /* whatever comes later is submitted after what the host did */
    return ACL_SUCCESS;
}

void sim_history_clear(sim_history *history) {
    free(history->uses);
    *history = (sim_history){0};
}

/* ---- blocks ---- */

/* The number of blocks that start at or before an address. */
static size_t position(const char *address) {
    size_t low = 0, high = block_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle].start <= address) low = middle + 1;
        else high = middle;
    }
    return low;
}

void sim_block_add(void *start, size_t size, bool pinned) {
    pthread_mutex_lock(&blocks_lock);
    if (block_count == block_capacity) {
        block_capacity = block_capacity ? 2 * block_capacity : 64;
        blocks = realloc(blocks, block_capacity * sizeof *blocks);
    }
    size_t index = position(start);
    memmove(blocks + index + 1, blocks + index, (block_count - index) * sizeof *blocks);
    blocks[index] = (block){start, size, pinned, {0}};
    block_count++;
    pthread_mutex_unlock(&blocks_lock);
}

void sim_block_remove(void *start) {
    pthread_mutex_lock(&blocks_lock);
    size_t index = position(start);
    if (index && blocks[index - 1].start == start) {
        sim_history_clear(&blocks[index - 1].history);
        memmove(blocks + index - 1, blocks + index, (block_count - index) * sizeof *blocks);
        block_count--;
    }
    pthread_mutex_unlock(&blocks_lock);
}

static block *find(const char *address) {
    size_t index = position(address);
    return index && address < blocks[index - 1].start + blocks[index - 1].size ? &blocks[index - 1] : NULL;
}

int sim_is_pinned(const void *address) {
    pthread_mutex_lock(&blocks_lock);
    const block *found = find(address);
    bool pinned = found && found->pinned;
    pthread_mutex_unlock(&blocks_lock);
    return pinned;
}

int sim_memory_use(const sim_access *access, const char *name) {
    pthread_mutex_lock(&blocks_lock);
    block *used = find(access->address);
    int error = used ? sim_history_use(&used->history, access, name) : ACL_SUCCESS;
    pthread_mutex_unlock(&blocks_lock);
    return error;
}

void sim_histories_clear(void) {
    pthread_mutex_lock(&blocks_lock);
    for (size_t i = 0; i < block_count; i++) sim_history_clear(&blocks[i].history);
    pthread_mutex_unlock(&blocks_lock);
}
