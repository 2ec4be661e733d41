"""topk_routing: Python's own sorting of float64 scores as the oracle."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.moe.topk_routing.plan import plan_routing
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run


def logits_of(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Numbers that differ from each other by more than a rounding, in random order."""
    generator = torch.Generator().manual_seed(seed)
    steps = torch.stack([torch.randperm(shape[1], generator=generator) for _ in range(shape[0])] or [torch.empty(0)])
    return (steps.reshape(shape) / 16 - shape[1] / 32).to(dtype)


def oracle(
    logits: torch.Tensor,
    k: int,
    sigmoid: bool,
    bias: list[float] | None,
    groups: int = 1,
    top_groups: int = 1,
    renormalise: bool = False,
    scale: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    weights, ids = [], []
    for row in logits.double().tolist():
        total = sum(math.exp(value - max(row)) for value in row)
        scores = [1 / (1 + math.exp(-v)) if sigmoid else math.exp(v - max(row)) / total for v in row]
        choice = [score + shift for score, shift in zip(scores, bias or [0.0] * len(row))]
        size = len(row) // groups
        best = [sorted(choice[g * size : (g + 1) * size], reverse=True)[: 2 if bias else 1] for g in range(groups)]
        allowed = sorted(range(groups), key=lambda g: -sum(best[g]))[:top_groups]
        chosen = sorted((e for e in range(len(row)) if e // size in allowed), key=lambda e: -choice[e])[:k]
        total = sum(scores[e] for e in chosen) if renormalise else 1.0
        ids.append(chosen)
        weights.append([scores[e] / total * scale for e in chosen])
    shape = (len(ids), k)
    return torch.tensor(weights, dtype=torch.float64).reshape(shape), torch.tensor(ids).reshape(shape)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestTopkRouting:
    def test_literal_values(self, implementation: str) -> None:
        logits = torch.tensor([[0.0, math.log(3), math.log(4), float("-inf")]])
        weights, ids = run("topk_routing", implementation, logits, 2, False, None, 1, 1, False, 1.0)
        assert ids.tolist() == [[2, 1]]
        assert weights[0].tolist() == pytest.approx([0.5, 0.375])

    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize("sigmoid", [False, True], ids=["softmax", "sigmoid"])
    @pytest.mark.parametrize(("experts", "k"), [(1, 1), (3, 3), (65, 3)], ids=str)
    def test_experts_of_any_number(
        self, implementation: str, experts: int, k: int, sigmoid: bool, dtype: torch.dtype
    ) -> None:
        logits = logits_of(3, experts, dtype=dtype)
        weights, ids = run("topk_routing", implementation, guarded(logits), k, sigmoid, None, 1, 1, True, 2.5)
        expected = oracle(logits, k, sigmoid, None, renormalise=True, scale=2.5)
        assert_close(ids, expected[1], "exact")
        assert_close(weights, expected[0], "reduction")

    @pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
    @pytest.mark.parametrize(("groups", "size", "top_groups", "k"), [(4, 8, 2, 6), (3, 5, 1, 5), (5, 1, 3, 3)], ids=str)
    def test_groups_are_chosen_first(
        self, implementation: str, groups: int, size: int, top_groups: int, k: int, biased: bool
    ) -> None:
        logits = logits_of(4, groups * size, seed=1)
        # Bias decides between experts, and weights do not show it.
        bias = [float(number % 7) / 5 for number in range(groups * size)] if biased else None
        given = None if bias is None else torch.tensor(bias)
        weights, ids = run("topk_routing", implementation, logits, k, True, given, groups, top_groups, False, 1.0)
        expected = oracle(logits, k, True, bias, groups, top_groups)
        assert_close(ids, expected[1], "exact")
        assert_close(weights, expected[0], "reduction")

    def test_the_first_of_equal_experts_wins(self, implementation: str) -> None:
        _, ids = run("topk_routing", implementation, torch.zeros(2, 9), 4, False, None, 3, 2, False, 1.0)
        assert ids.tolist() == [[0, 1, 2, 3]] * 2

    def test_a_bias_below_every_other_number_still_chooses_distinct_experts(self, implementation: str) -> None:
        bias = torch.full((6,), float("-inf"))
        bias[4] = 0.0
        _, ids = run("topk_routing", implementation, torch.zeros(1, 6), 3, True, bias, 1, 1, False, 1.0)
        assert ids.tolist() == [[4, 0, 1]]

    def test_no_tokens(self, implementation: str) -> None:
        weights, ids = run("topk_routing", implementation, torch.empty(0, 8), 2, False, None, 1, 1, False, 1.0)
        assert (weights.shape, ids.shape) == ((0, 2), (0, 2))
        assert (weights.dtype, ids.dtype) == (torch.float32, torch.int32)

    @settings(max_examples=3, deadline=None)
    @given(data=st.data())
    def test_random_shapes(self, implementation: str, data: st.DataObject) -> None:
        groups, size = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 12))
        top_groups = data.draw(st.integers(1, groups))
        k = data.draw(st.integers(1, top_groups * size))
        logits = logits_of(data.draw(st.integers(1, 5)), groups * size, seed=2)
        arguments = (k, data.draw(st.booleans()), None, groups, top_groups, data.draw(st.booleans()), 1.0)
        weights, ids = run("topk_routing", implementation, logits, *arguments)
        expected = oracle(logits, *arguments)
        assert_close(ids, expected[1], "exact")
        assert_close(weights, expected[0], "reduction")


def test_more_tokens_than_programs_and_experts_that_do_not_fit() -> None:
    assert plan_routing(cuda_target(132), MAX_PROGRAMS + 5, 8, 1).programs == MAX_PROGRAMS
    assert plan_routing(ASCEND_910B1, 100, 8, 1).programs == 48
    with pytest.raises(ValueError, match="20000 experts in 1 groups do not fit"):
        plan_routing(ASCEND_910B1, 100, 20000, 1)


def test_operator_is_well_formed() -> None:
    opcheck("topk_routing", logits_of(3, 8), 2, True, torch.zeros(8), 2, 1, True, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": 3}, "groups that divide"),
        ({"groups": 2, "top_groups": 3}, "3 of them chosen"),
        ({"k": 9}, "9 experts of 8"),
        ({"k": 5, "groups": 2}, "5 experts of 4"),
        ({"bias": torch.ones(7)}, r"bias of shape \(7,\) and 8 experts"),
    ],
    ids=["groups", "top-groups", "k", "k-in-groups", "bias"],
)
def test_numbers_that_do_not_go_together_are_refused(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ascend_kernels.topk_routing(**({"logits": torch.zeros(2, 8), "k": 2} | change))
