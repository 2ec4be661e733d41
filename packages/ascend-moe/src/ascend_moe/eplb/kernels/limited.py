"""Improving one layer with few transfers between any two ranks."""

import numpy as np

from ascend_moe.eplb.arrays import Booleans, Floats, Integers
from ascend_moe.eplb.kernels.basics import total, unit_loads
from ascend_moe.eplb.kernels.compiled import compiled
from ascend_moe.eplb.kernels.descent import counted, replace, rest_of, three_largest, with_other_replica
from ascend_moe.eplb.kernels.greedy import loads_of


@compiled
def source_of(held: Booleans, sent: Integers, limit: int, expert: int, rank: int, ranks_per_node: int) -> int:
    """Return the rank that sends `expert` to `rank`: one that held it, may still send there, -1 if there is none.

    One of the same node is preferred, then the one that sent least.
    """
    node = rank // ranks_per_node
    chosen, least = -1, np.inf
    for source in range(held.shape[1]):
        if source != rank and held[expert, source] and sent[source, rank] < limit:
            cost = total(sent[source]) + (0 if source // ranks_per_node == node else 1_000_000)
            if cost < least:
                chosen, least = source, cost
    return chosen


@compiled
def improve(
    place: Integers,
    weight: Floats,
    limit: int,
    within_node: bool,
    ranks_per_node: int,
    threshold: float,
    min_gain: float,
    steps: int,
) -> int:
    """Improve `place` in place, step by step, each the best one for the largest rank load; return the number of steps.

    A step exchanges two experts of the rank with the largest load and another rank, or replaces one replica by another
    that lightens that rank. Every expert comes to a rank from one that held it at the beginning, at most `limit`
    experts over each ordered pair of ranks; an expert that came stays, and one that left does not come back.

    Args:
        weight: [1, experts]
        within_node: whether experts may only come from ranks of the same node.
        threshold: a largest over mean rank load below which nothing is done.
        min_gain: share of the mean rank load by which a step must lower the largest.
    """
    ranks, slots = place.shape
    experts = weight.shape[1]
    count, holds = counted(place, experts)
    held = holds.copy()
    unit = unit_loads(weight, count)
    sent = np.zeros((ranks, ranks), np.int64)
    load = loads_of(place, unit)
    mean = total(load[0]) / ranks
    for step in range(steps):
        top = three_largest(load)
        hot = top[0, 0]
        now = load[0, hot]
        if now < threshold * mean or mean == 0:
            return step
        best, best_squares = now - min_gain * mean, np.inf
        at_rank, at_slot, chosen, partner_slot = -1, -1, -1, -1
        for rank in range(ranks):
            if within_node and rank // ranks_per_node != hot // ranks_per_node:
                continue
            rest = rest_of(load, top, hot, rank)[0]
            for slot in range(slots):
                item = place[rank, slot]
                if not held[item, rank]:
                    continue  # it has just come
                # Exchange it with one of the hottest rank.
                if rank != hot and not held[item, hot] and not holds[item, hot]:
                    for other in range(slots):
                        leaving = place[hot, other]
                        if holds[leaving, rank] or held[leaving, rank] or not held[leaving, hot]:
                            continue
                        if sent[rank, hot] >= limit or sent[hot, rank] >= limit:
                            continue
                        change = unit[0, item] - unit[0, leaving]
                        value = max(load[0, hot] + change, load[0, rank] - change, rest)
                        squares = 2 * change * (load[0, hot] - load[0, rank] + change)
                        if value < best or (value == best and squares < best_squares):
                            best, best_squares = value, squares
                            at_rank, at_slot, chosen, partner_slot = rank, slot, leaving, other
                # Or replace it by another replica.
                if count[item] < 2:
                    continue
                for candidate in range(experts if rank == hot else slots):
                    new = candidate if rank == hot else place[hot, candidate]
                    if holds[new, rank] or held[new, rank] or count[new] >= ranks:
                        continue
                    source = source_of(held, sent, limit, new, rank, ranks_per_node)
                    if source < 0 or (within_node and source // ranks_per_node != rank // ranks_per_node):
                        continue
                    value, squares = with_other_replica(load, weight, unit, count, holds, rank, item, new)
                    if value < best or (value == best and squares < best_squares):
                        best, best_squares = value, squares
                        at_rank, at_slot, chosen, partner_slot = rank, slot, new, -1
        if at_rank < 0:
            return step
        if partner_slot >= 0:
            coming, leaving = place[at_rank, at_slot], chosen
            place[at_rank, at_slot], place[hot, partner_slot] = leaving, coming
            holds[coming, at_rank], holds[coming, hot] = False, True
            holds[leaving, hot], holds[leaving, at_rank] = False, True
            sent[at_rank, hot] += 1
            sent[hot, at_rank] += 1
        else:
            sent[source_of(held, sent, limit, chosen, at_rank, ranks_per_node), at_rank] += 1
            replace(place, count, holds, weight, unit, at_rank, at_slot, chosen)
        load = loads_of(place, unit)
    return steps
