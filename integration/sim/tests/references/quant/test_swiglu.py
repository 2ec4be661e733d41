# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from ..calls import call
from ..oracle import as_float64
from .steps import assert_same_steps, by_token, quantised


def swiglu(values: np.ndarray, left: bool) -> np.ndarray:
    half = values.shape[-1] // 2
    a, b = values[..., :half], values[..., half:]
    gate, up = (a, b) if left else (b, a)
    return gate / (1 + np.exp(-gate)) * up


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(("index", "kind"), [([2, 2, 6], 0), ([2, 0, 4], 1), (None, 0)])
def test_swiglu_quant_by_token(index: list[int] | None, kind: int, left: bool) -> None:
    """As the vendor's golden: the scale is 127 / max and y = x * scale."""
    x, smooth = torch.randn(6, 32).half(), torch.rand(3 if index else 1, 16) + 0.5
    y, scale = call(
        "npu::npu_swiglu_quant",
        x,
        smooth_scales=smooth,
        group_index=torch.tensor(index, dtype=torch.int32) if index else None,
        activate_left=left,
        quant_mode=1,
        group_list_type=kind,
    )
    rows = [0, 0, 2, 2, 2, 2] if index else [0] * 6
    values = swiglu(as_float64(x), left) * as_float64(smooth)[rows]
    steps, expected = by_token(values)
    np.testing.assert_allclose(as_float64(scale), 1 / expected, rtol=1e-5)
    assert_same_steps(y, steps)


def test_swiglu_quant_with_given_scales() -> None:
    x, smooth, offsets = torch.randn(6, 32).half(), torch.rand(2, 16) * 20, torch.randint(-5, 5, (2, 16)).float()
    y, scale = call(
        "npu::npu_swiglu_quant",
        x,
        smooth_scales=smooth,
        offsets=offsets,
        group_index=torch.tensor([2, 6], dtype=torch.int32),
        quant_mode=0,
    )
    rows = [0, 0, 1, 1, 1, 1]
    values = swiglu(as_float64(x), False) * as_float64(smooth)[rows] + as_float64(offsets)[rows]
    assert_same_steps(y, quantised(values))
    assert scale.isnan().all()


@pytest.mark.parametrize("integer_bias", [True, False])
@pytest.mark.parametrize("left", [False, True])
def test_dequant_swiglu_quant_by_token(left: bool, integer_bias: bool) -> None:
    """Rows of group g take row g of every parameter; an integer bias comes before the scales, a float one after."""
    x = torch.randint(-500, 500, (7, 32), dtype=torch.int32)
    weight, activation = torch.rand(2, 32) * 0.01, torch.rand(7)
    bias = torch.randint(-50, 50, (2, 32), dtype=torch.int32) if integer_bias else torch.randn(2, 32)
    smooth = torch.rand(2, 16) + 0.5
    y, scale = call(
        "npu::npu_dequant_swiglu_quant",
        x,
        weight_scale=weight,
        activation_scale=activation,
        bias=bias,
        quant_scale=smooth,
        group_index=torch.tensor([3, 2]),
        activate_left=left,
        quant_mode=1,
    )
    rows = [0, 0, 0, 1, 1]
    values, shift = as_float64(x)[:5], as_float64(bias)[rows]
    factor = as_float64(weight)[rows] * as_float64(activation)[:5, None]
    values = (values + shift) * factor if integer_bias else values * factor + shift
    steps, expected = by_token(swiglu(values, left) * as_float64(smooth)[rows])
    np.testing.assert_allclose(as_float64(scale)[:5], expected, rtol=1e-4)
    assert_same_steps(y[:5], steps)


def test_dequant_swiglu_quant_with_given_scales() -> None:
    x = torch.randn(3, 4, 32).bfloat16()
    divisor, offset = torch.rand(16) * 0.05 + 0.01, torch.randint(-5, 5, (16,)).float()
    y, _ = call("npu::npu_dequant_swiglu_quant", x, quant_scale=divisor, quant_offset=offset, activate_left=True)
    expected = swiglu(as_float64(x), True) / as_float64(divisor) + as_float64(offset)
    assert_same_steps(y, quantised(expected))


@pytest.mark.parametrize("mode", [1, 2])
def test_dequant_swiglu_quant_with_clamps(mode: int) -> None:
    """gate = min(gate, 7), up in [-7, 7]: gate * sigmoid(1.702 gate) * (up + 1); mode 1 interleaves the two."""
    x = (torch.randn(4, 32) * 6).bfloat16()
    y, scale = call("npu::npu_dequant_swiglu_quant", x, activate_left=True, quant_mode=1, swiglu_mode=mode)
    values = as_float64(x)
    gate, up = (values[:, ::2], values[:, 1::2]) if mode == 1 else (values[:, :16], values[:, 16:])
    gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
    steps, expected = by_token(gate / (1 + np.exp(-1.702 * gate)) * (up + 1))
    np.testing.assert_allclose(as_float64(scale), expected, rtol=1e-4)
    assert_same_steps(y, steps)


def test_dequant_swiglu_quant_of_zeros_has_scale_one() -> None:
    y, scale = torch.ops.npu.npu_dequant_swiglu_quant(torch.zeros(2, 32).half(), quant_mode=1)
    assert not y.any()
    assert scale.tolist() == [1, 1]


def test_dequant_swiglu_quant_needs_scales_for_integers() -> None:
    with pytest.raises(RuntimeError, match="weight_scale"):
        torch.ops.npu.npu_dequant_swiglu_quant(torch.zeros(2, 32, dtype=torch.int32))
