"""The policies beside DeepSeek's algorithm as the installed vLLM carries it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from vllm.distributed.eplb.policy.default import DefaultEplbPolicy

from ascend_moe.eplb import InvalidPlacementError, Policy, Problem, plan
from ascend_moe.eplb.placement import checked_placement
from ascend_moe.eplb.policies.default import DefaultPolicy
from ascend_moe.eplb.policies.flashlb import FlashLBPolicy
from ascend_moe.eplb.policies.optimal import OptimalPolicy

POLICIES: dict[str, Policy] = {
    "default": DefaultPolicy(),
    "flashlb": FlashLBPolicy(),
    "optimal": OptimalPolicy(time_budget=0.5),
}
SHAPES = [
    (8, 2, 2), (8, 4, 4), (8, 8, 8), (12, 4, 4), (12, 6, 12), (16, 4, 8), (16, 8, 8), (32, 8, 8), (64, 8, 8),
    (64, 16, 16),
]  # fmt: skip
KINDS = ("uniform", "integers", "zipf", "lognormal")


def beside_the_peer(policy: Policy, problem: Problem, rank_loads: Callable) -> tuple[np.ndarray, np.ndarray]:
    """Largest rank loads (ours, the peer's) of the layers for which the peer's placement is valid."""
    size = problem.ranks * problem.slots
    answer = DefaultEplbPolicy.rebalance_experts(torch.from_numpy(problem.loads), size, 1, 1, problem.ranks)
    theirs = np.asarray(answer).reshape(problem.placement.shape)
    valid = []
    for layer, placement in enumerate(theirs):
        try:
            checked_placement(placement[None], problem.experts)
            valid.append(layer)
        except InvalidPlacementError:
            continue
    peer = rank_loads(theirs[valid], problem.loads[valid]).max(axis=1)
    return plan(policy, problem).statistics.max_after[valid], peer


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("layers", [8, pytest.param(100, marks=pytest.mark.slow)], ids=["80-cases", "1000-cases"])
def test_no_worse_than_the_peer(policy: Policy, layers: int, draw_problem: Callable, rank_loads: Callable) -> None:
    compared = 0
    for shape in SHAPES:
        ours, peer = beside_the_peer(policy, draw_problem(shape, layers, seed=shape[0], kinds=KINDS), rank_loads)
        assert (ours <= peer * (1 + 1e-9)).all()
        compared += len(peer)
    assert compared > 3 * layers  # of 10; in the others the peer has two replicas on one rank
