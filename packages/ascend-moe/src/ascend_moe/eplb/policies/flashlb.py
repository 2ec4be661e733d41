"""Placement for loads that vary: replication and placement searched together, by mean and spread over time."""

from __future__ import annotations

import numpy as np

from ascend_moe.eplb.arrays import Floats
from ascend_moe.eplb.kernels.alignment import settle
from ascend_moe.eplb.kernels.allotment import staged
from ascend_moe.eplb.kernels.descent import search, value_of
from ascend_moe.eplb.problem import Problem, Proposal

UPPER_QUARTILE = 0.6744897501960817
"""The standard normal distribution is below this in three cases of four: norm.ppf(0.75)."""


class FlashLBPolicy:
    """Search replication in stages, pack by risk, then improve by local search on all samples.

    The risk of a load is mean + z × standard deviation over the samples. A placement is as good as the mean over the
    samples of largest over mean rank load. The result depends on the problem and the options alone, not on the clock.

    Args:
        depth: stages of the search for a replication.
        width: how far the replicas of a group may be from their greedy share.
        sample_blocks: successive intervals are summed to at most this many samples.
        z: weight of the standard deviation.
        rounds: of the local search after that.
        tolerance: the local search ends this close, relatively, to equal loads.
        seed: of the local search.

    Raises:
        ValueError: an argument out of range.
    """

    def __init__(
        self,
        *,
        depth: int = 4,
        width: int = 8,
        sample_blocks: int = 16,
        z: float = UPPER_QUARTILE,
        rounds: int = 64,
        tolerance: float = 1e-4,
        seed: int = 0,
    ) -> None:
        for name, value in {"depth": depth, "sample_blocks": sample_blocks}.items():
            if value < 1:
                raise ValueError(f"{name} is {value}; it is at least 1")
        for name, number in {"width": width, "z": z, "rounds": rounds, "tolerance": tolerance, "seed": seed}.items():
            if number < 0:
                raise ValueError(f"{name} is {number}; it is at least 0")
        self.depth = depth
        self.width = width
        self.sample_blocks = sample_blocks
        self.z = z
        self.rounds = rounds
        self.tolerance = tolerance
        self.seed = seed

    def place(self, problem: Problem) -> Proposal:
        """Propose a placement of `problem`."""
        placement = problem.placement.copy()
        history = problem.loads[None] if problem.samples is None else problem.samples
        blocks = np.stack(
            [block.sum(axis=0) for block in np.array_split(history, min(len(history), self.sample_blocks))]
        )
        for layer, before in enumerate(problem.placement):
            weight = _normalised(blocks[:, layer])
            if not len(weight):
                continue  # an idle layer gives no reason to move anything
            spread = weight.std(axis=0, ddof=1) if len(weight) > 1 else np.zeros(problem.experts)
            risk = weight.mean(axis=0) + self.z * spread
            place = staged(weight, risk, problem.ranks, problem.slots, self.z, self.depth, self.width)
            enough = weight.sum() / problem.ranks * (1 + self.tolerance)
            value = search(place, weight, self.rounds, enough, self.seed)
            if value < value_of(before, weight) * (1 - 1e-12):
                placement[layer] = settle(place, before, problem.experts)
        return Proposal(placement)


def _normalised(blocks: Floats) -> Floats:
    """Return the samples with load, [samples, experts], scaled to the same sum.

    The largest rank load of such a sample is its largest over mean rank load, up to one factor for all of them.
    """
    total = blocks.sum(axis=1, keepdims=True)
    busy = total[:, 0] > 0
    return np.ascontiguousarray(blocks[busy] / total[busy] * total.mean())
