"""Greedy replication and packing of one layer: the start of every search."""

import numpy as np

from ascend_moe.eplb.arrays import Booleans, Floats, Integers
from ascend_moe.eplb.kernels.basics import heavy_first, unit_loads
from ascend_moe.eplb.kernels.compiled import compiled


@compiled
def allot(weight: Floats, slots_in_all: int, ranks: int) -> Integers:
    """Return how many replicas each expert gets, [experts]: at least 1, at most `ranks`, `slots_in_all` together.

    One replica after the other goes to the expert whose replicas carry most, which makes the largest load of a replica
    as small as it can be (an exchange argument; DeepSeek's EPLB replicates in the same order, without the cap).
    """
    experts = weight.size
    count = np.ones(experts, np.int64)
    for _ in range(slots_in_all - experts):
        chosen, most = -1, -1.0
        for expert in range(experts):
            if count[expert] < ranks:
                each = weight[expert] / count[expert]
                if each > most or (each == most and count[expert] < count[chosen]):
                    chosen, most = expert, each
        count[chosen] += 1
    return count


@compiled
def loads_of(place: Integers, unit: Floats) -> Floats:
    """Return the load of every rank in every sample, [samples, ranks]; `unit` is the load of a replica."""
    ranks, slots = place.shape
    load = np.zeros((unit.shape[0], ranks))
    for t in range(unit.shape[0]):
        for rank in range(ranks):
            for slot in range(slots):
                load[t, rank] += unit[t, place[rank, slot]]
    return load


@compiled
def risk_with(load: Floats, unit: Floats, rank: int, expert: int, z: float) -> float:
    """Return mean + z × standard deviation over the samples of the load of `rank` with one more `expert`."""
    samples = load.shape[0]
    mean = 0.0
    for t in range(samples):
        mean += load[t, rank] + unit[t, expert]
    mean /= samples
    if samples == 1 or z == 0.0:
        return mean
    variance = 0.0
    for t in range(samples):
        difference = load[t, rank] + unit[t, expert] - mean
        variance += difference * difference
    return mean + z * np.sqrt(variance / (samples - 1))


@compiled
def make_room(place: Integers, filled: Integers, holds: Booleans, load: Floats, unit: Floats, expert: int) -> int:
    """Move an item to a rank that has room but holds `expert`, and return the rank where a slot is now free for it.

    Such a move exists whenever fewer than all ranks hold `expert`: a rank without it is full, so it holds more items
    than one with room, and one of these is not on the latter. The move with the smallest larger load is taken.
    """
    ranks, slots = place.shape
    best, best_to, best_from, best_slot = np.inf, -1, -1, -1
    for to in range(ranks):
        if filled[to] == slots:
            continue
        for source in range(ranks):
            if holds[expert, source] or filled[source] < slots:
                continue
            for slot in range(slots):
                item = place[source, slot]
                if holds[item, to]:
                    continue
                larger = 0.0
                for t in range(load.shape[0]):
                    larger += max(load[t, to] + unit[t, item], load[t, source] - unit[t, item] + unit[t, expert])
                if larger < best:
                    best, best_to, best_from, best_slot = larger, to, source, slot
    item = place[best_from, best_slot]
    place[best_to, filled[best_to]] = item
    filled[best_to] += 1
    filled[best_from] -= 1
    place[best_from, best_slot] = place[best_from, filled[best_from]]
    holds[item, best_to], holds[item, best_from] = True, False
    for t in range(load.shape[0]):
        load[t, best_to] += unit[t, item]
        load[t, best_from] -= unit[t, item]
    return best_from


@compiled
def pack(weight: Floats, count: Integers, ranks: int, slots: int, z: float) -> Integers:
    """Return a placement [ranks, slots] of the replicas that `count` allots, no expert twice on a rank.

    Longest processing time first (Graham 1969), with slots as in DeepSeek's EPLB: the heaviest replica goes to the rank
    where the risk, mean + `z` × standard deviation over the samples, stays smallest. Where every rank with room holds
    the expert already, another item makes room elsewhere, so that a placement is always found.
    """
    samples, experts = weight.shape
    unit = unit_loads(weight, count)
    mean = np.zeros(experts)
    for t in range(samples):
        for expert in range(experts):
            mean[expert] += unit[t, expert]
    place = np.full((ranks, slots), -1, np.int64)
    filled = np.zeros(ranks, np.int64)
    holds = np.zeros((experts, ranks), np.bool_)
    load = np.zeros((samples, ranks))
    for expert in heavy_first(mean):
        for _ in range(count[expert]):
            chosen, least = -1, np.inf
            for rank in range(ranks):
                if filled[rank] < slots and not holds[expert, rank]:
                    risk = risk_with(load, unit, rank, expert, z)
                    if risk < least:
                        chosen, least = rank, risk
            if chosen < 0:
                chosen = make_room(place, filled, holds, load, unit, expert)
            place[chosen, filled[chosen]] = expert
            filled[chosen] += 1
            holds[expert, chosen] = True
            for t in range(samples):
                load[t, chosen] += unit[t, expert]
    return place
