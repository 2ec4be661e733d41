# SPDX-License-Identifier: Apache-2.0
"""Softmax against the vendor's goldens and formulas, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from .calls import call
from .oracle import as_float64, assert_close


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def test_masked_softmax_with_position_bias() -> None:
    """The shapes of the vendor's test."""
    x, bias, mask = torch.randn(1, 2, 3, 4, 4), torch.randn(1, 1, 3, 4, 4), torch.randn(1, 2, 1, 4, 4)
    out = call("npu::npu_masked_softmax_with_rel_pos_bias", x, mask, bias)
    weights = np.exp(as_float64(x) + as_float64(mask) + as_float64(bias))
    assert_close(out, weights / weights.sum(-1, keepdims=True), 1e-5)
    assert_close(call("npu::npu_masked_softmax_with_rel_pos_bias", x, None, bias).sum(-1), np.ones((1, 2, 3, 4)), 1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 32, 64), (1, 1, 32, 64), (32, 64)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.bfloat16], ids=str)
def test_scaled_masked_softmax(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x, mask = torch.randn(2, 3, 32, 64).to(dtype), torch.rand(shape) < 0.5
    out = call("npu::npu_scaled_masked_softmax", x, mask, 0.5)
    hidden = np.broadcast_to(mask.numpy(), x.shape)
    assert_close(out, softmax(np.where(hidden, -np.inf, as_float64(x) * 0.5)), 1e-5 if dtype == torch.float32 else 4e-3)


def test_scaled_masked_softmax_refuses() -> None:
    x, mask = torch.randn(2, 3, 32, 48), torch.zeros(32, 48, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="multiples of 32"):
        torch.ops.npu.npu_scaled_masked_softmax(x, mask)
    with pytest.raises(RuntimeError, match="fixed_triu_mask is True"):
        torch.ops.npu.npu_scaled_masked_softmax(x, mask, 1.0, True)


def test_softmax_in_place() -> None:
    x = torch.randn(3, 8, 16)
    expected = softmax(as_float64(x))
    call("npu::npu_attn_softmax_", x)
    assert_close(x, expected, 1e-6)
