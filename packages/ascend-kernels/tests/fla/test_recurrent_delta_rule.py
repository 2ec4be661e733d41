"""recurrent_delta_rule and its update of a state cache: the recurrence in float64 is the oracle."""

from __future__ import annotations

import pytest
import torch

import ascend_kernels
from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.fla.recurrent_delta_rule.naive import recurrent_delta_rule_naive
from ascend_kernels.ops.fla.recurrent_delta_rule.plan import plan_recurrent_delta_rule
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import IMPLEMENTATIONS, assert_close, opcheck, run


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tokens(count: int, per_channel: bool = False, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    """q, k, v, g and beta of two value heads; grouped keys unless the decay is per channel."""
    heads = 2 if per_channel else 1
    q, k = randn(count, heads, 12).to(dtype), randn(count, heads, 12, seed=1).to(dtype)
    g = -randn(count, 2, *((12,) if per_channel else ()), seed=2).abs()
    return q, k, randn(count, 2, 20, seed=3).to(dtype), g, randn(count, 2, seed=4).sigmoid().to(dtype)


def plain(inputs, state: torch.Tensor | None, begin: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs and final state of one sequence, from one state, in float64."""
    wide = [tensor[begin:end].double() for tensor in inputs]
    initial = None if state is None else state[None].double()
    output, final = recurrent_delta_rule_naive(*wide, initial, torch.tensor([0, end - begin]), 0.3, True)
    return output, final[0]


@pytest.mark.parametrize("per_channel", [False, True], ids=["per-head", "per-channel"])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestRecurrence:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
    def test_packed_sequences(self, implementation: str, per_channel: bool, dtype: torch.dtype) -> None:
        inputs, state = tokens(6, per_channel, dtype), randn(3, 2, 12, 20, seed=5)
        starts = torch.tensor([0, 2, 2, 6])
        output, final = run("recurrent_delta_rule", implementation, *inputs, state, starts, 0.3, True)
        expected = recurrent_delta_rule_naive(*(x.double() for x in inputs), state.double(), starts, 0.3, True)
        assert_close(output, expected[0], "recurrence")
        assert_close(final, expected[1], "recurrence")

    def test_decoding_continues_the_slots(self, implementation: str, per_channel: bool) -> None:
        inputs, state = tokens(3, per_channel), randn(5, 2, 12, 20, seed=5)
        before = state.clone()
        slots = torch.tensor([3, -1, 0], dtype=torch.int32)
        output = run(
            "recurrent_delta_rule_update",
            implementation,
            *inputs,
            state,
            torch.arange(4, dtype=torch.int32),
            slots,
            None,
            0.3,
            True,
        )
        for row, slot in enumerate(slots.tolist()):
            expected, after = plain(inputs, None if slot < 0 else before[slot], row, row + 1)
            assert_close(output[row : row + 1], expected, "recurrence")
            if slot >= 0:
                assert_close(state[slot], after, "recurrence")
        for untouched in (1, 2, 4):
            assert torch.equal(state[untouched], before[untouched])

    def test_rejected_drafts_leave_no_trace(self, implementation: str, per_channel: bool) -> None:
        first, second = tokens(6, per_channel), tuple(tensor.flip(0) for tensor in tokens(6, per_channel))
        state = randn(9, 2, 12, 20, seed=5)
        before = state.clone()
        # Two sequences of three tokens; the third row pads the batch and must touch nothing.
        slots = torch.tensor([[1, 4, 2], [7, 3, 5], [-1, -1, -1]], dtype=torch.int32)
        starts = torch.tensor([0, 3, 6, 6], dtype=torch.int32)

        def verify(inputs, accepted: list[int]) -> torch.Tensor:
            number = torch.tensor(accepted, dtype=torch.int32)
            arguments = (*inputs, state, starts, slots, number, 0.3, True)
            return run("recurrent_delta_rule_update", implementation, *arguments)

        verify(first, [1, 1, 1])
        middle = state.clone()
        # Of the first sequence one token was accepted, of the second all three: those states are continued.
        output = verify(second, [1, 3, 1])
        for row, (accepted, start) in enumerate(((1, 1), (3, 7))):
            _, kept = plain(first, before[start], 3 * row, 3 * row + accepted)
            assert_close(middle[slots[row, accepted - 1]], kept, "recurrence")
            expected, after = plain(second, kept, 3 * row, 3 * row + 3)
            assert_close(output[3 * row : 3 * row + 3], expected, "recurrence")
            assert_close(state[slots[row, 2]], after, "recurrence")
        for untouched in (0, 6, 8):
            assert torch.equal(state[untouched], before[untouched])

    def test_no_tokens(self, implementation: str, per_channel: bool) -> None:
        inputs, state = tokens(0, per_channel), randn(2, 2, 12, 20, seed=5)
        output, final = run("recurrent_delta_rule", implementation, *inputs, state, torch.tensor([0, 0, 0]), 0.3, True)
        assert output.shape == (0, 2, 20)
        assert torch.equal(final, state)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_more_rows_than_cores(implementation: str) -> None:
    sequences = 60
    q, v, beta = randn(sequences, 1, 1), randn(sequences, 2, 1, seed=1), torch.ones(sequences, 2)
    starts = torch.arange(sequences + 1, dtype=torch.int32)
    arguments = (q, torch.ones_like(q), v, torch.zeros(sequences, 2), beta, None, starts, 1.0, False)
    output, final = run("recurrent_delta_rule", implementation, *arguments)
    # From zeros, with key and strength 1, the state is the value.
    assert_close(final.flatten(1), v[:, :, 0], "recurrence")
    assert_close(output, v * q, "recurrence")


@pytest.mark.parametrize("target", [ASCEND_910B1, cuda_target(132)], ids=lambda target: target.kind)
def test_more_rows_than_an_npu_starts_programs(target) -> None:
    plan = plan_recurrent_delta_rule(2050 * 32, 128, 128, target)
    assert plan.programs <= MAX_PROGRAMS
    assert 128 * plan.block_v * 4 * 6 <= target.unified_buffer or target.kind == "cuda"


def test_operators_are_well_formed() -> None:
    inputs, state = tokens(3), randn(4, 2, 12, 20)
    starts = torch.arange(4, dtype=torch.int32)
    opcheck("recurrent_delta_rule", *inputs, None, starts, 0.3, True)
    slots = torch.tensor([2, -1, 0], dtype=torch.int32)
    opcheck("recurrent_delta_rule_update", *inputs, state, starts, slots, None, 0.3, True)


def test_public_functions_agree_with_transformers() -> None:
    model = pytest.importorskip(
        "transformers.models.qwen3_next.modeling_qwen3_next",
        reason="the environment of stock Triton has no transformers",
    )
    q, k, v, g, beta = (tensor[None] for tensor in tokens(7))
    expected, expected_final = model.torch_recurrent_gated_delta_rule(
        q.expand(-1, -1, 2, -1), k.expand(-1, -1, 2, -1), v, g, beta, None, True, use_qk_l2norm_in_kernel=True
    )
    output, final = ascend_kernels.recurrent_delta_rule(q, k, v, g, beta, use_qk_l2norm=True)
    assert_close(output, expected, "recurrence")
    assert_close(final, expected_final, "recurrence")
    state = torch.zeros(1, 2, 12, 20)
    updated = ascend_kernels.recurrent_delta_rule_update(
        q[0], k[0], v[0], g[0], beta[0], state, torch.tensor([0, 7]), torch.tensor([0]), use_qk_l2norm=True
    )
    assert_close(updated, expected[0], "recurrence")
    assert_close(state, expected_final, "recurrence")


def test_slots_in_pieces_are_refused() -> None:
    state = randn(4, 2, 20, 12).transpose(2, 3)
    with pytest.raises(ValueError, match="each slot of the state"):
        ascend_kernels.recurrent_delta_rule_update(*tokens(1), state, torch.tensor([0, 1]), torch.tensor([0]))
