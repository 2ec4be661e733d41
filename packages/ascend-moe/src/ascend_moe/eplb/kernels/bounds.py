"""Lower bounds of the largest rank load of one layer, whatever the replication and the placement."""

import numpy as np

from ascend_moe.eplb.arrays import Floats
from ascend_moe.eplb.kernels.basics import heavy_first, total
from ascend_moe.eplb.kernels.compiled import compiled


@compiled
def lightest_company(weight: Floats, slots_in_all: int, ranks: int, slots: int) -> float:
    """Return a lower bound of what the other slots of a rank carry: its `slots` - 1 lightest different replicas."""
    most = min(ranks, slots_in_all - weight.size + 1)
    order, company = heavy_first(weight), 0.0
    for position in range(weight.size - slots + 1, weight.size):
        company += weight[order[position]] / most
    return company


@compiled
def slots_needed(weight: Floats, target: float, company: float, ranks: int) -> float:
    """Return a lower bound of the slots that all experts need if no rank may carry more than `target`; inf if none do.

    A replica and the company it cannot avoid must fit: w/r + company ≤ target. Of replicas above target/2 a rank takes
    one at most, so there are at most `ranks` of them: every expert either has small replicas, ceil(2w/target) of them,
    or at least ceil(w / (target - company)) big ones. Choosing the big ones is a knapsack problem whose linear
    relaxation (Dantzig 1957) bounds the slots that can be saved.
    """
    experts = weight.size
    room = target - company
    if room <= 0:
        return np.inf
    slack = 1.0 - 1e-12  # rounding must never make the bound too high
    needed, big, saved = 0.0, np.zeros(experts), np.zeros(experts)
    for expert in range(experts):
        few = max(1.0, np.ceil(weight[expert] / room * slack))
        many = max(few, np.ceil(2 * weight[expert] / target * slack))
        if few > ranks:
            return np.inf
        if many > ranks:  # only big ones are allowed: their ranks are taken, whatever is saved elsewhere
            needed += few
            big[expert], saved[expert] = few, np.inf
        else:
            needed += many
            big[expert], saved[expert] = few, many - few
    free = float(ranks)
    ratio = np.empty(experts)
    for expert in range(experts):
        ratio[expert] = saved[expert] / max(big[expert], 1.0)
    order = heavy_first(ratio)
    for position in range(experts):
        expert = order[position]
        if saved[expert] == np.inf:
            free -= big[expert]
            if free < 0:
                return np.inf
        elif saved[expert] > 0:
            part = min(1.0, free / big[expert])
            needed -= part * saved[expert]
            free -= part * big[expert]
    return needed


@compiled
def lower_bound(weight: Floats, ranks: int, slots: int) -> float:
    """Return a lower bound of the largest rank load, [experts] to a scalar.

    The larger of the mean rank load and the smallest target for which `slots_needed` are there, by bisection.
    """
    mean = total(weight) / ranks
    company = lightest_company(weight, ranks * slots, ranks, slots)
    low, high = mean, total(weight) + company
    if mean == 0 or slots_needed(weight, low, company, ranks) <= ranks * slots + 1e-9:
        return mean
    for _ in range(60):
        middle = (low + high) / 2
        if slots_needed(weight, middle, company, ranks) > ranks * slots + 1e-9:
            low = middle
        else:
            high = middle
    return low
