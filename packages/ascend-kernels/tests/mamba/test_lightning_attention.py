"""lightning_attention, its update and state_copy: the recurrence in float64 is the oracle."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import ascend_kernels
from ascend_kernels.ops.mamba.lightning_attention.naive import lightning_attention_naive
from ascend_kernels.target import ASCEND_910B1, cuda_target, use_target
from ascend_kernels.testing import IMPLEMENTATIONS, assert_close, opcheck, run

SLOPES = torch.tensor([0.02, 1.5])


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def batch(lengths: list[int], dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    """q, k and v of two heads, initial states and offsets of a packed batch."""
    tokens = sum(lengths)
    q, k, v = randn(tokens, 1, 16), randn(tokens, 1, 16, seed=1), randn(tokens, 2, 24, seed=2)
    state = randn(len(lengths), 2, 16, 24, seed=3)
    return q.to(dtype), k.to(dtype), v.to(dtype), state, torch.tensor([0, *lengths]).cumsum(0)


def oracle(q, k, v, state, starts) -> tuple[torch.Tensor, torch.Tensor]:
    return lightning_attention_naive(q.double(), k.double(), v.double(), SLOPES.double(), state.double(), starts, 0.5)


def test_the_recurrence_has_the_values_of_its_definition() -> None:
    one = torch.ones(2, 1, 1)
    v = torch.tensor([3.0, 5.0]).view(2, 1, 1)
    half = torch.tensor([0.6931471805599453])
    output, final = lightning_attention_naive(one, 2 * one, v, half, None, torch.tensor([0, 2]), 1.0)
    # S = 6, then 6 / 2 + 10.
    assert output.flatten().tolist() == pytest.approx([6.0, 13.0])
    assert final.item() == pytest.approx(13.0)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestPrefill:
    @pytest.mark.parametrize("lengths", [[1], [65], [63, 0, 129], [0]], ids=lambda lengths: "-".join(map(str, lengths)))
    def test_packed_sequences(self, implementation: str, lengths: list[int]) -> None:
        q, k, v, state, starts = batch(lengths)
        output, final = run("lightning_attention", implementation, q, k, v, SLOPES, state, starts, 0.5)
        expected, expected_final = oracle(q, k, v, state, starts)
        assert_close(output, expected, "recurrence")
        assert_close(final, expected_final, "recurrence")

    def test_half_precision(self, implementation: str) -> None:
        q, k, v, state, starts = batch([70], torch.float16)
        output, _ = run("lightning_attention", implementation, q, k, v, SLOPES, state, starts, 0.5)
        expected, _ = oracle(q, k, v, state, starts)
        assert (output.double() - expected).norm() <= 5e-3 * expected.norm()

    def test_tokens_cut_out_of_rows_of_nan(self, implementation: str) -> None:
        q, k, v, state, starts = batch([65])
        rows = torch.full((65, 120), float("nan"))
        views = []
        for tensor, begin in ((q, 3), (k, 21), (v, 50)):
            view = rows[:, begin : begin + tensor[0].numel()].unflatten(1, tensor.shape[1:])
            view.copy_(tensor)
            views.append(view)
        output, final = run("lightning_attention", implementation, *views, SLOPES, state, starts, 0.5)
        expected, expected_final = oracle(q, k, v, state, starts)
        assert_close(output, expected, "recurrence")
        assert_close(final, expected_final, "recurrence")


@pytest.mark.parametrize("target", [ASCEND_910B1, cuda_target(1)], ids=lambda target: target.kind)
def test_sequences_of_several_segments(target) -> None:
    pytest.importorskip("triton", reason="the Triton kernels need a Triton")
    from ascend_kernels.ops.mamba.lightning_attention.plan import plan_lightning_attention
    from ascend_kernels.ops.mamba.lightning_attention.triton import lightning_attention_triton

    q, k, v, state, starts = batch([400, 0, 130])
    plan = replace(plan_lightning_attention(530, 3, 2, 24, target), segment=128)
    with use_target(target):
        output, final = lightning_attention_triton(q, k, v, SLOPES, state, starts, 0.5, plan)
    expected, expected_final = oracle(q, k, v, state, starts)
    assert_close(output, expected, "recurrence")
    assert_close(final, expected_final, "recurrence")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_decoding_continues_the_slots(implementation: str) -> None:
    q, k, v, _, _ = batch([3])
    state = randn(5, 2, 16, 24, seed=4)
    before = state.clone()
    slots, starts = torch.tensor([3, -1, 0], dtype=torch.int32), torch.arange(4, dtype=torch.int32)
    output = run("lightning_attention_update", implementation, q, k, v, SLOPES, state, starts, slots, 0.5)
    initial = torch.stack([before[3], torch.zeros_like(before[0]), before[0]])
    expected, final = oracle(q, k, v, initial, starts)
    assert_close(output, expected, "recurrence")
    assert_close(state[[3, 0]], final[[0, 2]], "recurrence")
    assert torch.equal(state[[1, 2, 4]], before[[1, 2, 4]])


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8], ids=str)
def test_copies_between_slots(implementation: str, dtype: torch.dtype) -> None:
    state = (randn(6, 3, 70) * 50).to(dtype)
    before = state.clone()
    source, target = torch.tensor([4, -1, 0, 2]), torch.tensor([1, 3, -1, 5])
    run("state_copy", implementation, state, source, target)
    expected = before.clone()
    expected[1], expected[5] = before[4], before[2]
    assert torch.equal(state, expected)


def test_operators_are_well_formed() -> None:
    q, k, v, state, starts = batch([3, 0])
    opcheck("lightning_attention", q, k, v, SLOPES, state, starts, 0.5)
    opcheck("lightning_attention_update", q, k, v, SLOPES, state, starts, torch.tensor([1, 0]), 0.5)
    opcheck("state_copy", state, torch.tensor([1]), torch.tensor([0]))
    output, final = ascend_kernels.lightning_attention(q[None], k[None], v[None], SLOPES)
    assert (output.shape, final.shape) == ((1, 3, 2, 24), (1, 2, 16, 24))


def test_what_does_not_fit_together_is_refused() -> None:
    q, k, v, state, starts = batch([3])
    with pytest.raises(ValueError, match="heads of v"):
        ascend_kernels.lightning_attention(q[None], k[None, :, :, :8], v[None], SLOPES)
    with pytest.raises(ValueError, match="each slot of the state"):
        ascend_kernels.lightning_attention_update(q, k, v, SLOPES, state.transpose(2, 3), starts, torch.tensor([0]))
    with pytest.raises(ValueError, match="must have one shape"):
        ascend_kernels.state_copy(state, torch.tensor([0, 1]), torch.tensor([0]))
