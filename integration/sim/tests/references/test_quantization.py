# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from .oracle import as_float64

INT8, QINT8, QUINT8, QINT32 = 1, 12, 13, 14


def quantised(values: np.ndarray, low: int = -128, high: int = 127) -> np.ndarray:
    """Rounded half to even and saturated."""
    return np.clip(np.rint(values), low, high)


def assert_same_steps(actual: torch.Tensor, expected: np.ndarray, share: float = 0.01) -> None:
    """Equal, but for a few values whose float32 and float64 forms round to neighbouring steps."""
    difference = np.abs(as_float64(actual) - expected)
    assert difference.max() <= 1
    assert (difference != 0).mean() <= share


@pytest.mark.parametrize("divide", [True, False], ids=["divide", "multiply"])
def test_quantize_along_the_last_axis(divide: bool) -> None:
    x, scale = torch.randn(4, 12) * 3, torch.rand(12) + 0.05
    zero = torch.randint(-5, 5, (12,), dtype=torch.int32) if divide else torch.randint(-5, 5, (12,)).float()
    values = as_float64(x) / as_float64(scale) if divide else as_float64(x) * as_float64(scale)
    y = torch.ops.npu.npu_quantize(x, scale, zero, QINT8, -1, divide)
    assert y.dtype == torch.int8
    assert_same_steps(y, quantised(values + as_float64(zero)))


@pytest.mark.parametrize(
    ("number", "dtype", "low", "high"), [(QUINT8, torch.uint8, 0, 255), (QINT32, torch.int32, -(2**31), 2**31 - 1)]
)
def test_quantize_to_other_dtypes(number: int, dtype: torch.dtype, low: int, high: int) -> None:
    x = torch.tensor([[-3.0, 0.5, 1.5, 300.0]])
    y = torch.ops.npu.npu_quantize(x, torch.ones(1), None, number, -1)
    assert y.dtype == dtype
    assert np.array_equal(as_float64(y), quantised(as_float64(x), low, high))


def test_dynamic_quant_per_token() -> None:
    x = torch.randn(5, 3, 16).half()
    y, scale = torch.ops.npu.npu_dynamic_quant(x)
    expected = np.abs(as_float64(x)).max(-1) / 127
    np.testing.assert_allclose(as_float64(scale), expected, rtol=1e-6)
    assert_same_steps(y, quantised(as_float64(x) / expected[..., None]))


def test_dynamic_quant_of_zeros_is_zero() -> None:
    y, scale = torch.ops.npu.npu_dynamic_quant(torch.zeros(2, 8).half())
    assert not y.any()
    assert not scale.any()


def test_dynamic_quant_with_smooth_scales_by_group() -> None:
    """Rows up to group_index[0] take row 0 of smooth_scales, those up to group_index[1] row 1, ..."""
    x, smooth = torch.randn(6, 8).half(), torch.rand(3, 8).half() + 0.5
    rows = np.array([0, 0, 2, 2, 2, 2])
    values = as_float64(x) * as_float64(smooth)[rows]
    scale = np.abs(values).max(-1) / 127
    y, actual = torch.ops.npu.npu_dynamic_quant(
        x, smooth_scales=smooth, group_index=torch.tensor([2, 2, 6], dtype=torch.int32)
    )
    np.testing.assert_allclose(as_float64(actual), scale, rtol=1e-6)
    assert_same_steps(y, quantised(values / scale[:, None]))


def test_dynamic_quant_asymmetric() -> None:
    x = (torch.randn(7, 16) + 1).bfloat16()
    y, scale, offset = torch.ops.npu.npu_dynamic_quant_asymmetric(x)
    values = as_float64(x)
    expected = (values.max(-1) - values.min(-1)) / 255
    shift = 127 - values.max(-1) / expected
    np.testing.assert_allclose(as_float64(scale), expected, rtol=1e-5)
    np.testing.assert_allclose(as_float64(offset), shift, rtol=1e-4, atol=1e-4)
    assert_same_steps(y, quantised(values / expected[:, None] + shift[:, None]))


def normalised(x1: torch.Tensor, x2: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor | None) -> np.ndarray:
    total = as_float64(x1 + x2)
    y = total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-6) * as_float64(gamma)
    return y if beta is None else y + as_float64(beta)


@pytest.mark.parametrize("with_beta", [False, True], ids=["plain", "beta"])
def test_add_rms_norm_quant(with_beta: bool) -> None:
    x1, x2, gamma = torch.randn(5, 32).half(), torch.randn(5, 32).half(), torch.randn(32).half()
    beta = torch.randn(32).half() if with_beta else None
    scales, zero = torch.rand(32) * 0.05 + 0.01, torch.randint(-5, 5, (32,), dtype=torch.int32)
    y1, _, x = torch.ops.npu.npu_add_rms_norm_quant(x1, x2, gamma, scales, zero, beta)
    expected = normalised(x1, x2, gamma, beta) / as_float64(scales) + as_float64(zero)
    assert torch.equal(x, x1 + x2)
    assert_same_steps(y1, quantised(expected))


def test_add_rms_norm_dynamic_quant_gives_what_was_asked_for() -> None:
    x1, x2, gamma = torch.randn(5, 32).half(), torch.randn(5, 32).half(), torch.randn(32).half()
    smooth = torch.rand(32).half() + 0.5
    y1, y2, x, s1, s2 = torch.ops.npu.npu_add_rms_norm_dynamic_quant(x1, x2, gamma, smooth_scale1=smooth)
    values = normalised(x1, x2, gamma, None) * as_float64(smooth)
    scale = np.abs(values).max(-1) / 127
    np.testing.assert_allclose(as_float64(s1), scale, rtol=1e-5)
    assert_same_steps(y1, quantised(values / scale[:, None]))
    assert torch.equal(x, x1 + x2)
    assert y2.numel() == s2.numel() == 0
