"""Branch and bound over all replications and placements of one small layer."""

import numpy as np

from ascend_moe.eplb.arrays import Floats, Integers
from ascend_moe.eplb.kernels.basics import heavy_first, total
from ascend_moe.eplb.kernels.compiled import compiled


@compiled
def may_fit(unit: Floats, ranks: int, slots: int, target: float) -> bool:
    """Return whether replicas of loads `unit`, sorted from the heaviest, pass a pigeonhole test for `target`.

    Of the first k × ranks + 1 replicas, some rank takes k + 1; the rest of its slots carry at least the lightest.
    """
    for k in range(slots):
        last = k * ranks
        heavy = total(unit[last - k : last + 1])
        light = total(unit[unit.size - (slots - k - 1) :])
        if heavy + light >= target:
            return False
    return True


@compiled
def place_below(
    weight: Floats, count: Integers, ranks: int, slots: int, target: float, nodes: int
) -> tuple[bool, Integers, int]:
    """Look for a placement of the replicas `count` allots with every rank below `target`, depth first.

    The replicas of an expert are placed one after the other on ranks of increasing number, and of ranks with the same
    load and room only the first is tried, as they are alike. A branch ends where a rank cannot stay below the target
    even with the lightest replicas, or where ranks that cannot be filled waste more than there is to spare.

    Returns (found, placement, nodes left); with no nodes left the answer "not found" is open.
    """
    experts, size = weight.size, ranks * slots
    nodes -= size  # listing the replicas costs as much as placing them
    each = np.empty(experts)
    for expert in range(experts):
        each[expert] = weight[expert] / count[expert]
    order = heavy_first(each)
    expert_of = np.empty(size, np.int64)
    first = np.empty(size, np.bool_)
    filled = 0
    for position in range(experts):
        expert = order[position]
        for replica in range(count[expert]):
            expert_of[filled], first[filled] = expert, replica == 0
            filled += 1
    unit = np.empty(size)
    for item in range(size):
        unit[item] = weight[expert_of[item]] / count[expert_of[item]]
    place = np.full((ranks, slots), -1, np.int64)
    if not may_fit(unit, ranks, slots, target):
        return False, place, nodes
    spare = target * ranks - total(unit)
    lightest = unit[size - 1]
    load, used = np.zeros(ranks), np.zeros(ranks, np.int64)
    choice = np.full(size, -1, np.int64)
    tried = np.full(size, -1, np.int64)  # the last rank tried for an item
    tried[0] = -1
    item = 0
    while item >= 0:
        if choice[item] >= 0:  # back here: take the item off its rank
            rank = choice[item]
            used[rank] -= 1
            load[rank] -= unit[item]
            choice[item] = -1
        lowest = -1 if first[item] else choice[item - 1]
        chosen = -1
        for rank in range(max(tried[item], lowest) + 1, ranks):
            free = slots - used[rank]
            if free == 0 or load[rank] + unit[item] + (free - 1) * lightest >= target:
                continue
            alike = False
            for other in range(lowest + 1, rank):
                if used[other] == used[rank] and load[other] == load[rank]:
                    alike = True
                    break
            if not alike:
                chosen = rank
                break
        if chosen < 0:
            item -= 1
            continue
        nodes -= 1
        if nodes <= 0:
            return False, place, 0
        tried[item] = choice[item] = chosen
        load[chosen] += unit[item]
        used[chosen] += 1
        if item + 1 == size:
            used[:] = 0
            for it in range(size):
                place[choice[it], used[choice[it]]] = expert_of[it]
                used[choice[it]] += 1
            return True, place, nodes
        waste = 0.0
        for rank in range(ranks):
            waste += max(0.0, target - load[rank] - (slots - used[rank]) * unit[item + 1])
        if waste > spare * (1 + 1e-12):
            continue  # the loop takes the item off again and tries the next rank
        item += 1
        tried[item] = -1
    return False, place, nodes


@compiled
def fewest_replicas(weight: Floats, ranks: int, room: float) -> Integers:
    """Return the fewest replicas with which a replica of each expert stays below `room`, [experts]."""
    fewest = np.ones(weight.size, np.int64)
    for expert in range(weight.size):
        while fewest[expert] <= ranks and weight[expert] / fewest[expert] >= room:
            fewest[expert] += 1
    return fewest


@compiled
def optimum(weight: Floats, ranks: int, slots: int, place: Integers, value: float, nodes: int) -> tuple[float, bool]:
    """Improve `place`, whose largest rank load is `value`, in place until no valid placement is better.

    Goes through all replications whose replicas can stay below the best value, experts from the heaviest. Returns
    (value, whether it is proven to be the optimum); it is not when `nodes` steps of the search did not suffice.
    """
    experts, size = weight.size, ranks * slots
    order = heavy_first(weight)
    ordered = np.empty(experts)
    for position in range(experts):
        ordered[position] = weight[order[position]]
    better = value * (1 - 1e-12)
    fewest = fewest_replicas(ordered, ranks, better)
    count = fewest.copy()
    for position in range(experts):
        if fewest[position] > ranks:
            return value, True
    if total(fewest) > size:
        return value, True
    # An odometer over count[0 … experts - 2]; the last expert takes what is left.
    while True:
        left = size - total(count[: experts - 1])
        if fewest[experts - 1] <= left <= ranks:
            count[experts - 1] = left
            while True:
                found, better_place, nodes = place_below(ordered, count, ranks, slots, better, nodes)
                if nodes <= 0:
                    return value, False
                if not found:
                    break
                value = 0.0
                for rank in range(ranks):
                    amount = 0.0
                    for slot in range(slots):
                        expert = better_place[rank, slot]
                        amount += ordered[expert] / count[expert]
                        place[rank, slot] = order[expert]
                    value = max(value, amount)
                better = value * (1 - 1e-12)
        nodes -= 1
        if nodes <= 0:
            return value, False
        position = experts - 2
        while position >= 0:
            count[position] += 1
            if count[position] <= ranks and total(count[: experts - 1]) + fewest[experts - 1] <= size:
                break
            count[position] = fewest[position]
            position -= 1
        if position < 0:
            return value, True
