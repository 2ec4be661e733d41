# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from ascend_sim.references import limits

from ..calls import call
from ..oracle import as_float64
from .steps import assert_same_steps, by_token, quantised


def normalised(x1: torch.Tensor, x2: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor | None) -> np.ndarray:
    total = as_float64(x1 + x2)
    y = total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-6) * as_float64(gamma)
    return y if beta is None else y + as_float64(beta)


@pytest.mark.parametrize("with_beta", [False, True], ids=["plain", "beta"])
def test_add_rms_norm_quant(with_beta: bool) -> None:
    x1, x2, gamma = torch.randn(5, 32).half(), torch.randn(5, 32).half(), torch.randn(32).half()
    beta = torch.randn(32).half() if with_beta else None
    scales, zero = torch.rand(32) * 0.05 + 0.01, torch.randint(-5, 5, (32,), dtype=torch.int32)
    y1, _, x = call("npu::npu_add_rms_norm_quant", x1, x2, gamma, scales, zero, beta)
    expected = normalised(x1, x2, gamma, beta) / as_float64(scales) + as_float64(zero)
    assert torch.equal(x, x1 + x2)
    assert_same_steps(y1, quantised(expected))


def test_add_rms_norm_dynamic_quant_gives_what_was_asked_for() -> None:
    x1, x2, gamma = torch.randn(5, 32).half(), torch.randn(5, 32).half(), torch.randn(32).half()
    smooth = torch.rand(32).half() + 0.5
    y1, y2, x, s1, s2 = call("npu::npu_add_rms_norm_dynamic_quant", x1, x2, gamma, smooth_scale1=smooth)
    values = normalised(x1, x2, gamma, None) * as_float64(smooth)
    scale = np.abs(values).max(-1) / 127
    np.testing.assert_allclose(as_float64(s1), scale, rtol=1e-5)
    assert_same_steps(y1, quantised(values / scale[:, None]))
    assert torch.equal(x, x1 + x2)
    assert y2.numel() == s2.numel() == 0


def normal_rows(x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor) -> np.ndarray:
    return normalised(x, torch.zeros_like(x), gamma, beta)


def test_rms_norm_quant() -> None:
    x, gamma, beta = torch.randn(5, 32).half(), torch.randn(32).half(), torch.randn(32).half()
    scale, offset = torch.tensor([0.1]).half(), torch.tensor([3], dtype=torch.int8)
    y = call("npu::npu_rms_norm_quant", x, gamma, beta, scale, offset, 1e-6)
    assert_same_steps(y, quantised(normal_rows(x, gamma, beta) / as_float64(scale) + 3))


@pytest.mark.parametrize("divide", [True, False], ids=["divide", "multiply"])
@limits.as_family(limits.Family.A5)
def test_rms_norm_quant_v2(divide: bool) -> None:
    x, gamma, beta = torch.randn(5, 32).half(), torch.randn(32).half(), torch.randn(32).half()
    scale, offset = torch.rand(32).half() + 0.1, torch.randint(-5, 5, (32,)).half()
    y, rstd = call("npu::npu_rms_norm_quant_v2", x, gamma, scale, offset=offset, beta=beta, div_mode=divide)
    values = normal_rows(x, gamma, beta)
    values = values / as_float64(scale) if divide else values * as_float64(scale)
    assert_same_steps(y, quantised(values + as_float64(offset)))
    expected = 1 / np.sqrt((as_float64(x) ** 2).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(as_float64(rstd), expected, rtol=1e-5)


def test_add_rms_norm_dynamic_quant_with_two_factors() -> None:
    x1, x2, gamma = torch.randn(5, 32).half(), torch.randn(5, 32).half(), torch.randn(32).half()
    smooth = torch.rand(2, 32).half() + 0.5
    y1, y2, _, s1, s2 = call(
        "npu::npu_add_rms_norm_dynamic_quant", x1, x2, gamma, smooth_scale1=smooth[0], smooth_scale2=smooth[1]
    )
    for y, scale, factor in ((y1, s1, smooth[0]), (y2, s2, smooth[1])):
        steps, expected = by_token(normalised(x1, x2, gamma, None) * as_float64(factor))
        np.testing.assert_allclose(as_float64(scale), expected, rtol=1e-5)
        assert_same_steps(y, steps)


@limits.as_family(limits.Family.A5)
def test_mx_norm_of_zeros_as_in_the_vendors_test() -> None:
    """1 / sqrt(1e-6) is 1000 and the scale of a block of zeros 0."""
    x, gamma = torch.zeros(8, 64).half(), torch.ones(64).half()
    y, total, scale, rstd = call("npu::npu_add_rms_norm_dynamic_mx_quant", x, x, gamma, dst_type=23)
    assert y.dtype == torch.float8_e5m2
    assert not total.any()
    assert not scale.view(torch.uint8).any()
    np.testing.assert_allclose(as_float64(rstd), 1000, rtol=1e-6)


@limits.as_family(limits.Family.A5)
def test_mx_norm_is_the_norm_quantised() -> None:
    x, gamma, beta = torch.randn(4, 64).bfloat16(), torch.randn(64).bfloat16(), torch.randn(64).bfloat16()
    y, scale, _ = call("npu::npu_rms_norm_dynamic_mx_quant", x, gamma, beta=beta, dst_type=24)
    back = torch.ops.npu.npu_anti_mx_quant(y, scale.view(torch.float8_e8m0fnu), dst_type=6, src_type=292)
    np.testing.assert_allclose(as_float64(back), normal_rows(x, gamma, beta), rtol=2**-3, atol=0.05)
