"""What is reported about a balancing step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ascend_moe.eplb.arrays import Floats, Integers
from ascend_moe.eplb.placement import rank_loads
from ascend_moe.eplb.problem import Plan, imbalance


@dataclass(frozen=True)
class PlanMetrics:
    """One balancing step in numbers.

    Attributes:
        imbalance_before, imbalance_after: largest over mean rank load, mean over the layers.
        changed_layers: layers whose placement changes.
        moved_experts: expert weights that a rank receives from another one, all layers together.
        moved_bytes: their size.
        planning_seconds: how long the policy took.
    """

    imbalance_before: float
    imbalance_after: float
    changed_layers: int
    moved_experts: int
    moved_bytes: int
    planning_seconds: float


def hotness(loads: Floats) -> Floats:
    """Return the share of each expert in the load of its layer, [layers, experts]; zeros for a layer without load."""
    total = loads.sum(axis=1, keepdims=True)
    return np.divide(loads, total, out=np.zeros_like(loads, dtype=np.float64), where=total > 0)


def layer_imbalance(placement: Integers, loads: Floats) -> Floats:
    """Return largest over mean rank load of every layer, [layers]; 1 for a layer without load."""
    per_rank = rank_loads(placement, loads)
    return imbalance(per_rank.max(axis=1), per_rank.mean(axis=1))


def plan_metrics(plan: Plan, bytes_per_expert: int) -> PlanMetrics:
    """Return the metrics of `plan`, where one expert of one layer is `bytes_per_expert` large, with its scales."""
    moved = int(plan.statistics.moves.sum())
    return PlanMetrics(
        imbalance_before=float(plan.statistics.imbalance_before.mean()),
        imbalance_after=float(plan.statistics.imbalance_after.mean()),
        changed_layers=len(plan.order),
        moved_experts=moved,
        moved_bytes=moved * bytes_per_expert,
        planning_seconds=plan.seconds,
    )
