"""From what slots counted to loads, and what is reported."""

import numpy as np
import pytest

from ascend_moe.eplb import Problem, plan
from ascend_moe.eplb.loads import LoadWindow, Phase, logical_loads, sum_over_ranks
from ascend_moe.eplb.metrics import hotness, layer_imbalance, plan_metrics
from ascend_moe.eplb.policies.default import DefaultPolicy


def test_counts_of_ranks_are_summed_before_anyone_looks_at_them() -> None:
    """Each rank counts its own experts only."""
    assert sum_over_ranks([[[7, 3, 0, 0]], [[0, 0, 4, 1]]]).tolist() == [[7, 3, 4, 1]]


def test_ranks_with_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="same shape"):
        sum_over_ranks([[[7, 3]], [[1, 2, 3]]])


def test_replicas_add_up_to_their_expert() -> None:
    placement = np.array([[[0, 1], [2, 0]], [[1, 2], [0, 1]]])
    counts = [[[5, 1], [2, 7]], [[1, 2], [3, 4]]]
    assert logical_loads(counts, placement, 3).tolist() == [[12, 1, 2], [3, 5, 2]]


@pytest.mark.parametrize(
    ("phase", "counted"),
    [(Phase.ALL, [True, True, True, False]), (Phase.PREFILL, [True, False, True, False]),
     (Phase.DECODE, [False, True, False, False])],
    ids=lambda it: str(it) if isinstance(it, Phase) else "",
)  # fmt: skip
def test_phases_choose_steps(phase: Phase, counted: list[bool]) -> None:
    steps = [(5, 0), (0, 5), (3, 2), (0, 0)]  # prefill, decode, both, none
    assert [phase.counts(*step) for step in steps] == counted


def test_window_keeps_the_last_intervals_of_its_phase() -> None:
    window = LoadWindow(2, Phase.DECODE)
    kept = [window.add([[value, 0.0]], *step) for value, step in [(1, (0, 1)), (2, (0, 1)), (9, (4, 0)), (3, (0, 1))]]
    assert kept == [True, True, False, True]
    assert window.samples().tolist() == [[[2, 0]], [[3, 0]]]
    assert window.loads().tolist() == [[5, 0]]


def test_an_empty_window_says_so() -> None:
    with pytest.raises(ValueError, match="no interval"):
        LoadWindow(2).loads()
    with pytest.raises(ValueError, match="intervals is 0"):
        LoadWindow(0)


def test_hotness_and_imbalance_have_no_nan() -> None:
    loads = np.array([[3.0, 1, 0, 0], [0, 0, 0, 0]])
    placement = np.array([[[0, 1], [2, 3]]] * 2)
    assert hotness(loads).tolist() == [[0.75, 0.25, 0, 0], [0, 0, 0, 0]]
    assert layer_imbalance(placement, loads).tolist() == [2, 1]


def test_metrics_of_a_plan() -> None:
    """Loads 4 and 4 on one rank, 0 and 0 on the other: one exchange, two weights, from 2 to 1."""
    problem = Problem(np.array([[4.0, 4, 0, 0]]), np.array([[[0, 1], [2, 3]]]))
    found = plan_metrics(plan(DefaultPolicy(), problem), bytes_per_expert=1000)
    assert (found.imbalance_before, found.imbalance_after) == (2, 1)
    assert (found.changed_layers, found.moved_experts, found.moved_bytes) == (1, 2, 2000)
    assert found.planning_seconds > 0
