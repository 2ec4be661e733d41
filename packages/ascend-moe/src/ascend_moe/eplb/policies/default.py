"""Greedy packing: the policy for every day, milliseconds for a whole model."""

from __future__ import annotations

import numpy as np

from ascend_moe.eplb.kernels.alignment import settle
from ascend_moe.eplb.kernels.descent import descend, value_of
from ascend_moe.eplb.kernels.greedy import allot, pack
from ascend_moe.eplb.problem import Problem, Proposal


class DefaultPolicy:
    """Replicate the heaviest experts, pack the heaviest replica first, then exchange experts while that helps.

    Replication and packing are the two greedy steps of DeepSeek's EPLB; an expert gets at most one replica per rank and
    no rank two of the same. A local search repairs what packing one replica at a time gets wrong. A layer changes only
    if its largest rank load falls by more than `min_gain`.

    Args:
        min_gain: how much smaller, as a share of the present one, a layer's largest rank load must get for the layer to
            change; 0 to change for any gain.
        steps: most improvements that the local search makes per slot.

    Raises:
        ValueError: `min_gain` outside 0 to 1, or negative `steps`.
    """

    def __init__(self, *, min_gain: float = 0.0, steps: int = 4) -> None:
        if not 0 <= min_gain < 1:
            raise ValueError(f"min_gain is {min_gain}; it is a share, at least 0 and below 1")
        if steps < 0:
            raise ValueError(f"steps is {steps}; it is at least 0")
        self.min_gain = min_gain
        self.steps = steps

    def place(self, problem: Problem) -> Proposal:
        """Propose a placement of `problem`."""
        placement = problem.placement.copy()
        size = problem.ranks * problem.slots
        # Changes of replication cost a look at every pair of experts: many for a small layer, few for a large one.
        replications = min(size, 2048 // size)
        for layer, before in enumerate(problem.placement):
            weight = problem.loads[layer][None]
            if not weight.any():
                continue  # an idle layer gives no reason to move anything
            place = pack(weight, allot(weight[0], size, problem.ranks), problem.ranks, problem.slots, 0.0)
            value = descend(place, weight, self.steps * size, replications)
            if value < value_of(before, weight) * (1 - self.min_gain - 1e-12):
                placement[layer] = settle(place, before, problem.experts)
        return Proposal(np.ascontiguousarray(placement))
