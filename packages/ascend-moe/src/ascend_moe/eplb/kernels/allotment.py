"""Joint search for how many replicas each expert gets, scored by packing them."""

import numpy as np

from ascend_moe.eplb.arrays import Floats, Integers
from ascend_moe.eplb.kernels.basics import heavy_first, total, unit_loads
from ascend_moe.eplb.kernels.compiled import compiled
from ascend_moe.eplb.kernels.greedy import allot, loads_of, pack


@compiled
def mean_ratio(place: Integers, unit: Floats) -> float:
    """Return the mean over the samples of largest over mean rank load; samples without load count as 1."""
    load = loads_of(place, unit)
    ratio = 0.0
    for t in range(load.shape[0]):
        largest, mean = 0.0, total(load[t]) / load.shape[1]
        for rank in range(load.shape[1]):
            largest = max(largest, load[t, rank])
        ratio += largest / mean if mean > 0 else 1.0
    return ratio / load.shape[0]


@compiled
def staged(weight: Floats, risk: Floats, ranks: int, slots: int, z: float, depth: int, width: int) -> Integers:
    """Return the placement of the best replication that a search in `depth` stages finds.

    The experts, from the one with most risk, are cut into `depth` groups. In each stage, the replicas of the group at
    hand vary by up to `width` around its share in the joint greedy replication of all experts left; groups before it
    are fixed, groups after it share greedily what is left. Each choice is scored by packing all experts.

    Args:
        weight: [samples, experts]
        risk: [experts], the weight that replication goes by.
    """
    experts, size = risk.size, ranks * slots
    order = heavy_first(risk)
    sorted_risk = np.empty(experts)
    for position in range(experts):
        sorted_risk[position] = risk[order[position]]
    count = allot(sorted_risk, size, ranks)
    trial = np.empty(experts, np.int64)
    for position in range(experts):
        trial[order[position]] = count[position]
    best_place = pack(weight, trial, ranks, slots, z)
    best = mean_ratio(best_place, unit_loads(weight, trial))
    interval = (experts + depth - 1) // depth
    for start in range(0, experts - interval, interval):
        end = start + interval
        left = size - total(count[:start])  # slots for the group at hand and those after it
        share = total(count[start:end])
        fixed = count.copy()
        for taken in range(max(interval, share - width), share + width + 1):
            after = left - taken
            if taken > interval * ranks or after < experts - end or after > (experts - end) * ranks:
                continue
            fixed[start:end] = allot(sorted_risk[start:end], taken, ranks)
            fixed[end:] = allot(sorted_risk[end:], after, ranks)
            for position in range(experts):
                trial[order[position]] = fixed[position]
            place = pack(weight, trial, ranks, slots, z)
            score = mean_ratio(place, unit_loads(weight, trial))
            if score < best * (1 - 1e-12):
                best, best_place = score, place
                count = fixed.copy()
    return best_place
