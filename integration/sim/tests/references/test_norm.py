# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from .oracle import as_float64, assert_close

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def golden(x: torch.Tensor, gamma: torch.Tensor, epsilon: float, axes: tuple[int, ...] = (-1,), offset: float = 0.0):
    """x / sqrt(mean(x^2) + epsilon) * gamma, and 1 / sqrt(...)."""
    values = as_float64(x)
    rstd = 1 / np.sqrt(np.mean(values**2, axis=axes, keepdims=True) + epsilon)
    return values * rstd * (as_float64(gamma) + offset), rstd


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rms_norm(dtype: torch.dtype) -> None:
    x, gamma = torch.randn(5, 3, 48, dtype=dtype), torch.randn(48, dtype=dtype)
    y, rstd = torch.ops.npu.npu_rms_norm(x, gamma, 1e-5)
    expected, expected_rstd = golden(x, gamma, 1e-5)
    assert y.dtype == dtype
    assert rstd.dtype == torch.float32
    assert_close(y, expected)
    assert_close(rstd, expected_rstd)


def test_rms_norm_over_two_dimensions_with_float32_gamma() -> None:
    x, gamma = torch.randn(4, 3, 16, dtype=torch.float16), torch.randn(3, 16)
    y, rstd = torch.ops.npu.npu_rms_norm(x, gamma)
    expected, expected_rstd = golden(x, gamma, 1e-6, axes=(-2, -1))
    assert_close(y, expected)
    assert_close(rstd, expected_rstd)


def test_rms_norm_rounds_once() -> None:
    """The vendor's golden multiplies by gamma in float32: one rounding, not one after each product."""
    x = torch.randn(64, 256).to(torch.bfloat16)
    gamma = (torch.randn(256) * 3).to(torch.bfloat16)
    y, _ = torch.ops.npu.npu_rms_norm(x, gamma, 1e-6)
    expected = torch.from_numpy(golden(x, gamma, 1e-6)[0]).to(torch.bfloat16)
    assert (y != expected).float().mean() < 1e-3


def test_gemma_rms_norm_adds_one_to_gamma() -> None:
    x, gamma = torch.randn(7, 32), torch.randn(32)
    y, _ = torch.ops.npu.npu_gemma_rms_norm(x, gamma, 1e-6)
    assert_close(y, golden(x, gamma, 1e-6, offset=1.0)[0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_add_rms_norm_normalises_the_rounded_sum(dtype: torch.dtype) -> None:
    x1, x2 = torch.randn(6, 40, dtype=dtype), torch.randn(6, 40, dtype=dtype)
    gamma = torch.randn(40, dtype=dtype)
    y, rstd, x = torch.ops.npu.npu_add_rms_norm(x1, x2, gamma, 1e-6)
    total = torch.from_numpy(as_float64(x1) + as_float64(x2)).to(dtype)
    expected, expected_rstd = golden(total, gamma, 1e-6)
    assert torch.equal(x, total)
    assert_close(y, expected)
    assert_close(rstd, expected_rstd)


def test_add_rms_norm_v2_writes_result_and_sum() -> None:
    x1, x2, gamma = torch.randn(4, 8), torch.randn(4, 8), torch.randn(8)
    before = as_float64(x1) + as_float64(x2)
    functional = torch.ops.npu.npu_add_rms_norm_v2_functional(x1, x2, gamma)
    rstd = torch.ops.npu.npu_add_rms_norm_v2(x1, x2, gamma)
    expected, expected_rstd = golden(torch.from_numpy(before).float(), gamma, 1e-6)
    for actual, value in ((x1, expected), (x2, before), (rstd, expected_rstd)):
        assert_close(actual, value)
    for actual, value in zip(functional, (rstd, x1, x2), strict=True):
        assert torch.equal(actual, value)


def test_add_rms_norm_cast_returns_both_precisions() -> None:
    x1, x2 = torch.randn(4, 16, dtype=torch.float16), torch.randn(4, 16, dtype=torch.float16)
    gamma = torch.randn(16, dtype=torch.float16)
    y1, y2, rstd, x = torch.ops.npu.npu_add_rms_norm_cast(x1, x2, gamma, 1e-6)
    expected, expected_rstd = golden(x1 + x2, gamma, 1e-6)
    assert y1.dtype == torch.float32
    assert_close(y1, expected)
    assert y2.dtype == torch.float16
    assert_close(y2, expected)
    assert_close(rstd, expected_rstd)
    assert torch.equal(x, x1 + x2)


def test_layer_norm_eval() -> None:
    x, weight, bias = torch.randn(3, 20), torch.randn(20), torch.randn(20)
    values = as_float64(x)
    centred = values - values.mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * as_float64(weight) + as_float64(bias)
    assert_close(torch.ops.npu.npu_layer_norm_eval(x, [20], weight, bias, 1e-5), expected)


def test_refuses_float64() -> None:
    with pytest.raises(RuntimeError, match=r"npu_rms_norm: input is float64; the hardware allows bfloat16, float16"):
        torch.ops.npu.npu_rms_norm(torch.ones(2, 4).double(), torch.ones(4).double())


def test_cast_refuses_float32() -> None:
    with pytest.raises(RuntimeError, match="npu_add_rms_norm_cast: x1 is float32"):
        torch.ops.npu.npu_add_rms_norm_cast(torch.ones(2, 4), torch.ones(2, 4), torch.ones(4))
