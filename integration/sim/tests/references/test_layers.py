# SPDX-License-Identifier: Apache-2.0
"""Norms that subtract the mean, gates and feed-forward blocks against the vendor's goldens, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from .calls import call
from .oracle import as_float64, assert_close

DTYPES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)


def tolerance(dtype: torch.dtype) -> float:
    return {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5}[dtype]


def normal(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return (x - mean) * rstd, mean, rstd


@DTYPES
def test_add_layer_norm(dtype: torch.dtype) -> None:
    x1, x2 = (torch.rand(2, 3, 64).to(dtype) * 10 for _ in range(2))
    gamma, beta = torch.rand(64).to(dtype), torch.rand(64).to(dtype)
    out = call("npu::npu_add_layer_norm", x1, x2, gamma, beta, 1e-5, True)
    total = as_float64(x1) + as_float64(x2)
    y, mean, rstd = normal(total, (-1,), 1e-5)
    expected = (y * as_float64(gamma) + as_float64(beta), mean, rstd, total)
    for found, wanted in zip(out, expected, strict=True):
        assert_close(found, wanted, tolerance(found.dtype))


def test_add_layer_norm_of_two_dtypes_and_without_the_sum() -> None:
    x1, x2 = torch.rand(2, 64).half(), torch.rand(2, 64)
    y, _, _, total = torch.ops.npu.npu_add_layer_norm(x1, x2, torch.ones(64), torch.zeros(64))
    assert y.dtype == torch.float32
    assert_close(y, normal(as_float64(x1) + as_float64(x2), (-1,), 1e-5)[0], 1e-5)
    assert total.isnan().all()


@DTYPES
def test_deep_norm(dtype: torch.dtype) -> None:
    x, gx = (torch.rand(4, 2, 64).to(dtype) * 10 for _ in range(2))
    gamma, beta = torch.rand(2, 64).to(dtype), torch.rand(2, 64).to(dtype)
    mean, rstd, y = call("npu::npu_deep_norm", x, gx, beta, gamma, 0.3, 1e-6)
    exact, *statistics = normal(0.3 * as_float64(x) + as_float64(gx), (-2, -1), 1e-6)
    assert_close(y, exact * as_float64(gamma) + as_float64(beta), tolerance(dtype))
    for found, wanted in zip((mean, rstd), statistics, strict=True):
        assert found.dtype == torch.float32
        assert_close(found, wanted, 1e-5)


def group_norm(x: Tensor, weight: Tensor, bias: Tensor, groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shape = (x.shape[0], groups, -1)
    y, mean, rstd = normal(as_float64(x).reshape(shape), (-1,), 1e-5)
    y = y.reshape(x.shape)
    spread = (slice(None), *[None] * (x.dim() - 2))
    return y * as_float64(weight)[spread] + as_float64(bias)[spread], mean[..., 0], rstd[..., 0]


@DTYPES
@pytest.mark.parametrize("shape", [(3, 6), (3, 6, 7, 2)], ids=str)
def test_group_norms(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x, weight, bias = torch.randn(shape).to(dtype), torch.randn(6).to(dtype), torch.randn(6).to(dtype)
    y, mean, rstd = group_norm(x, weight, bias, 3)
    swish = call("npu::npu_group_norm_swish", x, 3, weight, bias, 1e-5, 0.5)
    assert_close(swish[0], y / (1 + np.exp(-0.5 * y)), tolerance(dtype) * 2)
    silu = call("npu::npu_group_norm_silu", x, weight, bias, 3, 1e-5)
    assert_close(silu[0], y / (1 + np.exp(-y)), tolerance(dtype) * 2)
    for found in (swish, silu):
        assert_close(found[1], mean, tolerance(dtype) * 2)
        assert_close(found[2] / torch.from_numpy(rstd), np.ones_like(rstd), tolerance(dtype) * 2)


def test_group_norm_refuses_groups_that_do_not_divide() -> None:
    with pytest.raises(RuntimeError, match="a multiple of 4"):
        torch.ops.npu.npu_group_norm_silu(torch.ones(2, 6), torch.ones(6), torch.ones(6), 4)


def gelu(x: np.ndarray, tanh: bool) -> np.ndarray:
    """Formulas of npu_gelu_mul's page."""
    if tanh:
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


@DTYPES
@pytest.mark.parametrize("tanh", [False, True], ids=["erf", "tanh"])
def test_gelu_gates(dtype: torch.dtype, tanh: bool) -> None:
    x = torch.randn(3, 4, 16).to(dtype)
    left, right = np.split(as_float64(x), 2, -1)
    assert_close(
        call("npu::npu_gelu_mul", x, approximate="tanh" if tanh else "none"), gelu(left, tanh) * right, tolerance(dtype)
    )
    for activate_left, gate, other in ((False, right, left), (True, left, right)):
        out, half = call("npu::npu_geglu", x, -1, int(tanh), activate_left)
        assert_close(out, other * gelu(gate, tanh), tolerance(dtype))
        assert_close(half, gelu(gate, tanh), tolerance(dtype))


def test_geglu_along_another_dimension() -> None:
    x = torch.randn(6, 5)
    left, right = np.split(as_float64(x), 2, 0)
    assert_close(torch.ops.npu.npu_geglu(x, 0, 0)[0], left * gelu(right, False), 1e-5)


def test_mish() -> None:
    x = torch.randn(10, 30)
    exact = as_float64(x)
    assert_close(call("npu::npu_mish", x), exact * np.tanh(np.log1p(np.exp(exact))), 1e-5)


ACTIVATIONS: dict[str, Any] = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: gelu(x, False),
    "fastgelu": lambda x: x / (1 + np.exp(-1.702 * x)),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_feed_forward(activation: str) -> None:
    x, first, second = torch.randn(5, 16).half(), torch.randn(16, 32).half() / 4, torch.randn(32, 16).half() / 4
    bias = torch.randn(32).half(), torch.randn(16).half()
    out = call("npu::npu_ffn", x, first, second, activation, bias1=bias[0], bias2=bias[1])
    hidden = ACTIVATIONS[activation](as_float64(x) @ as_float64(first) + as_float64(bias[0]))
    assert_close(out, hidden @ as_float64(second) + as_float64(bias[1]), 5e-3)


@pytest.mark.parametrize("ends", [False, True], ids=["counts", "ends"])
def test_feed_forward_of_experts(ends: bool) -> None:
    x = torch.randn(7, 16).half()
    weights = torch.randn(3, 16, 16).half() / 4, torch.randn(3, 16, 16).half() / 4
    given: dict[str, Any] = {"expert_tokens_index": [2, 2, 7]} if ends else {"expert_tokens": [2, 0, 5]}
    out = call("npu::npu_ffn", x, *weights, "relu", **given)
    exact = [as_float64(t) for t in weights]
    rows = [(0, slice(0, 2)), (2, slice(2, 7))]
    expected = np.concatenate([np.maximum(as_float64(x[r]) @ exact[0][e], 0) @ exact[1][e] for e, r in rows])
    assert_close(out, expected, 5e-3)


def test_feed_forward_refuses_what_is_not_simulated() -> None:
    x = torch.ones(2, 4).half()
    with pytest.raises(NotImplementedError, match="activation='?swiglu"):
        torch.ops.npu.npu_ffn(x, torch.ones(4, 8).half(), torch.ones(4, 4).half(), "swiglu")
