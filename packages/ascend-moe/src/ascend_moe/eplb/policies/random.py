"""A random valid placement, the baseline of comparisons."""

from __future__ import annotations

import numpy as np

from ascend_moe.eplb.arrays import Integers
from ascend_moe.eplb.kernels.alignment import keep_slots
from ascend_moe.eplb.problem import Problem, Proposal


class RandomPolicy:
    """Replicate and place at random, the same for the same seed.

    Args:
        seed: of the generator; equal seeds give equal placements of equal problems.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def place(self, problem: Problem) -> Proposal:
        """Propose a placement of `problem`; its loads do not matter."""
        generator = np.random.default_rng(self.seed)
        placement = np.stack([keep_slots(self._layer(problem, generator), before) for before in problem.placement])
        return Proposal(placement)

    def _layer(self, problem: Problem, generator: np.random.Generator) -> Integers:
        """Deal one layer.

        An expert's replicas lie beside each other in the list that is dealt out in rounds, one expert to every rank in
        each round: no rank can get two of them, as no expert has more replicas than there are ranks.
        """
        count = np.ones(problem.experts, dtype=np.int64)
        for _ in range(problem.ranks * problem.slots - problem.experts):
            count[generator.choice(np.flatnonzero(count < problem.ranks))] += 1
        shuffled = generator.permutation(problem.experts)
        dealt = np.repeat(shuffled, count[shuffled]).reshape(problem.slots, problem.ranks).T
        return np.ascontiguousarray(dealt[generator.permutation(problem.ranks)])
