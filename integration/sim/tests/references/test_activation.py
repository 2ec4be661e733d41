# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from .oracle import as_float64, assert_close

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def test_fast_gelu_gives_the_printed_values() -> None:
    """torch_npu's page of fast_gelu prints these four digits."""
    y = torch.ops.npu.fast_gelu(torch.tensor([0.5991, 0.4094]))
    torch.testing.assert_close(y, torch.tensor([0.4403, 0.2733]), rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_fast_gelu(dtype: torch.dtype) -> None:
    x = torch.randn(100, dtype=dtype) * 3
    values = as_float64(x)
    assert_close(torch.ops.npu.npu_fast_gelu(x), values / (1 + np.exp(-1.702 * values)))


@pytest.mark.parametrize("dim", [-1, 0, 1])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_swiglu(dtype: torch.dtype, dim: int) -> None:
    x = torch.randn(4, 6, 8, dtype=dtype)
    a, b = np.split(as_float64(x), 2, axis=dim)
    y = torch.ops.npu.npu_swiglu(x, dim)
    assert y.dtype == dtype
    assert_close(y, a * sigmoid(a) * b)


def test_swiglu_rounds_once() -> None:
    x = torch.randn(64, 256).to(torch.bfloat16)
    a, b = np.split(as_float64(x), 2, axis=-1)
    expected = torch.from_numpy(a * sigmoid(a) * b).to(torch.bfloat16)
    assert (torch.ops.npu.npu_swiglu(x) != expected).float().mean() < 1e-3


def test_silu_and_in_place() -> None:
    x = torch.randn(50)
    expected = as_float64(x) * sigmoid(as_float64(x))
    assert_close(torch.ops.npu.npu_silu(x), expected)
    assert torch.ops.npu.npu_silu_(x) is x
    assert_close(x, expected)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate: str) -> None:
    x = torch.randn(50)
    values = as_float64(x)
    exact = values * 0.5 * (1 + np.vectorize(math.erf)(values / math.sqrt(2)))
    tanh = 0.5 * values * (1 + np.tanh(math.sqrt(2 / math.pi) * (values + 0.044715 * values**3)))
    assert_close(torch.ops.npu.npu_gelu(x, approximate=approximate), exact if approximate == "none" else tanh)


@pytest.mark.parametrize("interleaved", [True, False], ids=["interleaved", "halves"])
@pytest.mark.parametrize("groups", [None, [2, 1]], ids=["all-rows", "groups"])
def test_clipped_swiglu(interleaved: bool, groups: list[int] | None) -> None:
    x = torch.randn(5, 12) * 4
    rows = 5 if groups is None else sum(groups)
    values = as_float64(x)[:rows]
    a, b = (values[:, ::2], values[:, 1::2]) if interleaved else np.split(values, 2, axis=-1)
    a, b = np.minimum(a, 3.0), np.clip(b, -3.0, 3.0)
    expected = np.zeros((5, 6))
    expected[:rows] = a * sigmoid(0.7 * a) * (b + 1.2)
    index = None if groups is None else torch.tensor(groups)
    y = torch.ops.npu.npu_clipped_swiglu(x, group_index=index, alpha=0.7, limit=3.0, bias=1.2, interleaved=interleaved)
    assert_close(y, expected)


def test_clipped_swiglu_joins_dimensions_after_dim() -> None:
    """Elements pair up in the row that starts at ``dim``, even when that row spans several dimensions."""
    x = torch.randn(2, 4, 3)
    flat = as_float64(x).reshape(2, 12)
    a, b = np.minimum(flat[:, ::2], 7.0), np.clip(flat[:, 1::2], -7.0, 7.0)
    expected = (a * sigmoid(1.702 * a) * (b + 1)).reshape(2, 2, 3)
    assert_close(torch.ops.npu.npu_clipped_swiglu(x, dim=1), expected)
