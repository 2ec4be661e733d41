"""Kimi Delta Attention: the recurrence in float64 and transformers' Kimi Linear are the oracles."""

from __future__ import annotations

import math

import pytest
import torch

import ascend_kernels
from ascend_kernels.ops.fla.recurrent_delta_rule.naive import recurrent_delta_rule_naive
from ascend_kernels.testing import IMPLEMENTATIONS, assert_close, guarded, opcheck, run


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def batch(lengths: list[int], decay: float = 0.3, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    """q, k, v, g, beta, initial states and offsets of a packed batch with two heads."""
    tokens = sum(lengths)
    q, k, v = (
        randn(tokens, 2, 16).to(dtype),
        randn(tokens, 2, 16, seed=1).to(dtype),
        randn(tokens, 2, 24, seed=2).to(dtype),
    )
    g, beta = -randn(tokens, 2, 16, seed=3).abs() * decay, randn(tokens, 2, seed=4).sigmoid().to(dtype)
    return q, k, v, g, beta, randn(len(lengths), 2, 16, 24, seed=5), torch.tensor([0, *lengths]).cumsum(0)


def oracle(q, k, v, g, beta, state, starts, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    wide = [tensor.double() for tensor in (q, k, v, g, beta, state)]
    return recurrent_delta_rule_naive(*wide, starts, scale, True)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestChunkKda:
    @pytest.mark.parametrize("lengths", [[1], [70], [5, 0, 64]], ids=lambda lengths: "-".join(map(str, lengths)))
    def test_packed_sequences(self, implementation: str, lengths: list[int]) -> None:
        arguments = batch(lengths)
        output, final = run("chunk_kda", implementation, *arguments, 0.25, True)
        expected, expected_final = oracle(*arguments, 0.25)
        assert_close(output, expected, "recurrence")
        assert_close(final, expected_final, "recurrence")

    @pytest.mark.parametrize("decay", [0.0, 1.0, 5.0, 50.0], ids=str)
    def test_decays_of_any_size(self, implementation: str, decay: float) -> None:
        q, k, v, g, beta, state, starts = batch([70], decay)
        g[:, 0, ::3] = 0  # Channels that keep everything, beside channels that forget.
        arguments = (q, k, v, g, beta, state, starts)
        output, final = run("chunk_kda", implementation, *arguments, 0.25, True)
        expected, expected_final = oracle(*arguments, 0.25)
        assert_close(output, expected, "recurrence")
        assert_close(final, expected_final, "recurrence")

    def test_half_precision(self, implementation: str) -> None:
        arguments = batch([70], dtype=torch.float16)
        output, _ = run("chunk_kda", implementation, *arguments, 0.25, True)
        assert output.dtype == torch.float16
        assert_close(output, oracle(*arguments, 0.25)[0], "recurrence")


def test_public_function_agrees_with_transformers() -> None:
    model = pytest.importorskip(
        "transformers.models.kimi_linear.modeling_kimi_linear",
        reason="the environment of stock Triton has no transformers",
    )
    q, k, v, g, beta, _, _ = (tensor for tensor in batch([75]))
    rows = [tensor[None] for tensor in (q, k, v, g, beta)]
    output, final = ascend_kernels.chunk_kda(*rows, use_qk_l2norm=True)
    expected, expected_final = model.recurrent_kimi_delta_attention(
        *rows, initial_state=None, output_final_state=True, use_qk_l2norm_in_kernel=True
    )
    assert_close(output, expected, "recurrence")
    assert_close(final, expected_final, "recurrence")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestGate:
    def test_literal_values(self, implementation: str) -> None:
        g = torch.tensor([[[0.0, 30.0]]])
        decay = run("kda_gate", implementation, g, torch.tensor([math.log(2.0)]), None, 1.0, 20.0)
        assert decay.flatten().tolist() == pytest.approx([-2 * math.log(2.0), -60.0])

    @pytest.mark.parametrize("count", [0, 1, 67])
    def test_bias_and_strided_tokens(self, implementation: str, count: int) -> None:
        g, rate, bias = randn(count, 3, 20).to(torch.bfloat16), randn(3, seed=1), randn(60, seed=2)
        rows = guarded(g.flatten(1)).unflatten(1, (3, 20))
        decay = run("kda_gate", implementation, rows, rate, bias, 1.0, 20.0)
        step = torch.log1p((g.double() + bias.view(3, 20).double()).exp())
        assert_close(decay, -rate.double().exp()[:, None] * step, "reduction")


def test_operators_are_well_formed() -> None:
    opcheck("chunk_kda", *batch([9, 0]), 0.25, True)
    opcheck("kda_gate", randn(3, 2, 8), randn(2), randn(16), 1.0, 20.0)
    assert ascend_kernels.kda_gate(randn(3, 2, 8), randn(2)).shape == (3, 2, 8)
