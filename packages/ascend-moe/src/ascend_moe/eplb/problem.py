"""What a balancing policy is asked, and what it answers: arrays over [layers, ranks, slots]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ascend_moe.eplb.arrays import Floats, Integers
from ascend_moe.eplb.placement import checked_placement, rank_loads


def checked_loads(loads: ArrayLike, name: str = "loads", dimensions: int = 2) -> Floats:
    """Return `loads` as float64 of the given number of dimensions, the last two being [layers, experts].

    Raises:
        ValueError: another number of dimensions, no entry, or an entry that is negative or not finite.
    """
    array = np.ascontiguousarray(loads, dtype=np.float64)
    if array.ndim != dimensions or not array.size:
        raise ValueError(f"{name} must be a non-empty array of {dimensions} dimensions, this one has {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        layer, expert = (int(it) for it in np.argwhere(~np.isfinite(array) | (array < 0))[0][-2:])
        raise ValueError(f"{name} must be finite and not negative; layer {layer} expert {expert} is not")
    return array


@dataclass(frozen=True)
class Problem:
    """One balancing question.

    Attributes:
        loads: tokens per logical expert, [layers, experts], any unit, not negative.
        placement: the logical expert in every slot now, [layers, ranks, slots]; valid in the sense of `check`.
        nodes: hosts that the ranks are spread over, in order and evenly; ranks of one host exchange weights faster.
        samples: loads of successive intervals, [intervals, layers, experts], for policies that look at how loads vary;
            without it such a policy sees `loads` as one interval.

    Raises:
        ValueError: shapes that do not fit each other, ranks that do not divide among the nodes, loads that are negative
            or not finite, or an invalid placement, naming layer and rank.
    """

    loads: Floats
    placement: Integers
    nodes: int = 1
    samples: Floats | None = None

    def __post_init__(self) -> None:
        loads = checked_loads(self.loads)
        placement = checked_placement(self.placement, loads.shape[1])
        if placement.shape[0] != loads.shape[0]:
            raise ValueError(f"the placement has {placement.shape[0]} layers, the loads have {loads.shape[0]}")
        if self.nodes < 1 or placement.shape[1] % self.nodes:
            raise ValueError(f"{placement.shape[1]} ranks do not divide evenly among {self.nodes} nodes")
        object.__setattr__(self, "loads", loads)
        object.__setattr__(self, "placement", placement)
        if self.samples is not None:
            samples = checked_loads(self.samples, "samples", 3)
            if samples.shape[1:] != loads.shape:
                raise ValueError(f"samples have [layers, experts] = {samples.shape[1:]}, the loads have {loads.shape}")
            object.__setattr__(self, "samples", samples)

    @property
    def layers(self) -> int:
        """Number of layers with experts."""
        return self.placement.shape[0]

    @property
    def ranks(self) -> int:
        """Number of devices that share the experts."""
        return self.placement.shape[1]

    @property
    def slots(self) -> int:
        """Experts that one rank holds of each layer."""
        return self.placement.shape[2]

    @property
    def experts(self) -> int:
        """Number of logical experts."""
        return self.loads.shape[1]


@dataclass(frozen=True)
class Proposal:
    """What a policy returns.

    Attributes:
        placement: [layers, ranks, slots], in the order of slots that moves the fewest weights (`settle` arranges it).
        lower_bound: [layers], a proven lower bound of the largest rank load of any valid placement, or None.
    """

    placement: Integers
    lower_bound: Floats | None = None


@runtime_checkable
class Policy(Protocol):
    """A way of placing experts; entry points of the group ``ascend_moe.eplb_policies`` name classes of this kind.

    The options of a policy are the keyword arguments of its class. A policy keeps nothing between two calls.
    """

    def place(self, problem: Problem) -> Proposal:
        """Propose a placement of the same shape as the present one."""
        ...


@dataclass(frozen=True)
class LayerStatistics:
    """What a plan does to every layer; every attribute is [layers].

    Attributes:
        mean_load: load of a rank if all were equal, in the unit of the loads.
        max_before, max_after: the largest load of a rank with the present and with the new placement.
        moves: expert weights that a rank receives from another one.
        lower_bound: proven lower bound of `max_after`; at least `mean_load`.
    """

    mean_load: Floats
    max_before: Floats
    max_after: Floats
    moves: Integers
    lower_bound: Floats

    @property
    def imbalance_before(self) -> Floats:
        """Largest over mean rank load now; 1 for a layer without load."""
        return imbalance(self.max_before, self.mean_load)

    @property
    def imbalance_after(self) -> Floats:
        """Largest over mean rank load with the new placement; 1 for a layer without load."""
        return imbalance(self.max_after, self.mean_load)


def imbalance(largest: Floats, mean: Floats) -> Floats:
    """Return largest / mean, elementwise, and 1 where the mean is 0."""
    return np.divide(largest, mean, out=np.ones_like(mean), where=mean > 0)


@dataclass(frozen=True)
class Plan:
    """A checked placement.

    Attributes:
        placement: [layers, ranks, slots].
        statistics: per layer.
        policy: what made it.
        seconds: how long that took.
        order: the layers that change, the one that gains most (largest fall of the imbalance) first.
    """

    placement: Integers
    statistics: LayerStatistics
    policy: str
    seconds: float
    order: tuple[int, ...] = field(default=())


def statistics(problem: Problem, proposal: Proposal, moves: Integers) -> LayerStatistics:
    """Return the statistics of `proposal`."""
    before = rank_loads(problem.placement, problem.loads)
    after = rank_loads(proposal.placement, problem.loads)
    mean = problem.loads.sum(axis=1) / problem.ranks
    bound = mean if proposal.lower_bound is None else np.maximum(mean, proposal.lower_bound)
    return LayerStatistics(mean, before.max(axis=1), after.max(axis=1), moves, bound)
