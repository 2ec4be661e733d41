"""The placement of a map file, as a policy."""

from __future__ import annotations

import numpy as np

from ascend_moe.eplb.arrays import Integers
from ascend_moe.eplb.kernels.alignment import keep_slots
from ascend_moe.eplb.problem import Problem, Proposal


class FixedPolicy:
    """Proposes one placement for every problem, with slots arranged so that what a rank keeps stays where it is.

    Args:
        placement: [layers, ranks, slots].
    """

    def __init__(self, placement: Integers) -> None:
        self.placement = placement

    def place(self, problem: Problem) -> Proposal:
        """Propose it; the loads do not matter.

        Raises:
            ValueError: a problem of another shape.
        """
        if self.placement.shape != problem.placement.shape:
            raise ValueError(f"the placement is {self.placement.shape}, the present one is {problem.placement.shape}")
        pairs = zip(self.placement, problem.placement, strict=True)
        return Proposal(np.stack([keep_slots(np.ascontiguousarray(new), now) for new, now in pairs]))
