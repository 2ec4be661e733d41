# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from .oracle import as_float64, assert_close


def top_k_top_p(logits: np.ndarray, p: np.ndarray | None, k: np.ndarray | None) -> np.ndarray:
    """The page's nine steps, row by row."""
    out = np.full_like(logits, -np.inf)
    for row, values in enumerate(logits):
        order = np.argsort(values, kind="stable")
        ordered = values[order].copy()
        if k is not None:
            ordered[ordered < ordered[len(ordered) - k[row]]] = -np.inf
        if p is not None:
            weights = np.exp(ordered - ordered.max())
            mask = np.cumsum(weights / weights.sum()) <= 1 - p[row]
            mask[-1] = False
            ordered[mask] = -np.inf
        out[row, order] = ordered
    return out


@pytest.mark.parametrize("given", ["k", "p", "kp"])
def test_top_k_top_p(given: str) -> None:
    logits = torch.randn(5, 40) * 2
    k = torch.tensor([1, 3, 10, 39, 40], dtype=torch.int32) if "k" in given else None
    p = torch.tensor([0.0, 0.3, 0.71, 0.9, 1.0]) if "p" in given else None
    expected = top_k_top_p(as_float64(logits), None if p is None else as_float64(p), None if k is None else k.numpy())
    out = torch.ops.npu.npu_top_k_top_p(logits, p, k)
    assert np.array_equal(as_float64(out), expected)


def test_top_k_keeps_all_that_equal_the_threshold() -> None:
    """The mask is ``<`` the k-th largest value, so ties with it stay."""
    logits = torch.tensor([[1.0, 2.0, 2.0, 0.0, 2.0]])
    out = torch.ops.npu.npu_top_k_top_p(logits, None, torch.tensor([2], dtype=torch.int32))
    assert out.tolist() == [[-np.inf, 2.0, 2.0, -np.inf, 2.0]]


def test_top_k_refuses_zero() -> None:
    with pytest.raises(RuntimeError, match="npu_top_k_top_p: k is 0 to 0; the hardware allows 1 to 8"):
        torch.ops.npu.npu_top_k_top_p(torch.zeros(1, 8), None, torch.tensor([0], dtype=torch.int32))


def test_matmul_add_fp32_adds_the_transposed_product() -> None:
    x, weight, c = torch.randn(6, 4).half(), torch.randn(6, 5).half(), torch.randn(4, 5)
    expected = as_float64(x).T @ as_float64(weight) + as_float64(c)
    torch.ops.atb._npu_matmul_add_fp32(x, weight, c)
    assert_close(c, expected)


def test_linear() -> None:
    x, weight, bias = torch.randn(2, 16), torch.randn(4, 16), torch.randn(4)
    expected = as_float64(x) @ as_float64(weight).T + as_float64(bias)
    assert_close(torch.ops.npu.npu_linear(x, weight, bias), expected)


def test_transpose_batchmatmul_as_in_the_page() -> None:
    """x1 [M, B, K] with perm_x1 [1, 0, 2], x2 [B, K, N], y [M, B, N] with perm_y [1, 0, 2]."""
    x1, x2 = torch.randn(3, 2, 8).half(), torch.randn(2, 8, 5).half()
    expected = np.einsum("mbk,bkn->mbn", as_float64(x1), as_float64(x2))
    y = torch.ops.npu.npu_transpose_batchmatmul(x1, x2, perm_x1=[1, 0, 2], perm_y=[1, 0, 2])
    assert_close(y, expected, 8e-3)


def test_format_cast_keeps_shape_and_values() -> None:
    x = torch.randn(4, 6).t()
    y = torch.ops.npu.npu_format_cast(x, 29)
    assert y.is_contiguous()
    assert torch.equal(x, y)
    assert torch.ops.npu.npu_format_cast_.acl_format(x, 29) is x


def test_dtype_cast_as_in_the_page() -> None:
    x = torch.tensor([0, 0.5, -1.0])
    cast = torch.ops.npu.npu_dtype_cast(x, torch.int32)
    assert (cast.dtype, cast.tolist()) == (torch.int32, [0, 0, -1])
    assert torch.ops.npu._npu_dtype_cast(x, torch.float32) is not x


def test_dtype_cast_refuses_the_vendors_own_formats() -> None:
    with pytest.raises(NotImplementedError, match="npu_dtype_cast: dtype=297 is not simulated"):
        torch.ops.npu.npu_dtype_cast(torch.ones(2), 297)
