# SPDX-License-Identifier: Apache-2.0
"""Hyper-connections against the goldens of the vendor's tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from ascend_sim.references import limits

from .calls import call
from .oracle import as_float64, assert_close

N, D = 4, 64


@pytest.fixture(autouse=True)
def _on_a5() -> Iterator[None]:
    with limits.as_family(limits.Family.A5):
        yield


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def expected(x: Tensor, phi: Tensor, alpha: Tensor, bias: Tensor, gamma: Tensor | None) -> list[np.ndarray]:
    """cpu_op_exec of test_npu_mhc_pre, in float64."""
    streams, weight, factor, shift = (as_float64(t) for t in (x, phi, alpha, bias))
    flat = streams.reshape(*streams.shape[:-2], -1)
    inv_rms = 1 / np.sqrt((flat**2).mean(-1, keepdims=True) + 1e-6)
    product = (flat if gamma is None else flat * as_float64(gamma).reshape(-1)) @ weight.T
    scaled = product * inv_rms
    pre = sigmoid(scaled[..., :N] * factor[0] + shift[:N]) + 1e-6
    post = 2 * sigmoid(scaled[..., N : 2 * N] * factor[1] + shift[N : 2 * N])
    residual = np.full(1, np.nan)
    if len(factor) == 3:
        residual = (scaled[..., 2 * N :] * factor[2] + shift[2 * N :]).reshape(*scaled.shape[:-1], N, N)
    return [(pre[..., None] * streams).sum(-2), post, residual, inv_rms[..., 0], product, pre]


@pytest.mark.parametrize("lead", [(6,), (2, 3)], ids=["T", "BS"])
@pytest.mark.parametrize("gamma", [False, True], ids=["plain", "gamma"])
@pytest.mark.parametrize("residual", [False, True], ids=["gates", "residual"])
def test_pre(lead: tuple[int, ...], gamma: bool, residual: bool) -> None:
    rows = N * N + 2 * N if residual else 2 * N
    x = torch.randn(*lead, N, D).bfloat16()
    arguments = (x, torch.randn(rows, N * D) / 16, torch.full((3 if residual else 2,), 0.5), torch.randn(rows))
    scale = torch.rand(N, D) if gamma else None
    out = call("npu::npu_mhc_pre", *arguments, gamma=scale, out_flag=1)
    for index, (found, wanted) in enumerate(zip(out, expected(*arguments, scale), strict=True)):
        assert found.shape == wanted.shape
        if index == 2 and not residual:
            continue
        assert_close(found, wanted, 2**-7 if index == 0 else 1e-4)


def test_pre_without_what_only_training_reads() -> None:
    rows = N * N + 2 * N
    arguments = (torch.randn(6, N, D).half(), torch.randn(rows, N * D) / 16, torch.full((3,), 0.5), torch.randn(rows))
    out = call("npu::npu_mhc_pre", *arguments)
    assert_close(out[2], expected(*arguments, None)[2], 1e-4)
    assert all(tensor.isnan().all() for tensor in out[3:])
    rounded = torch.ops.npu.npu_mhc_pre(*arguments, inner_precise=1)
    assert not torch.equal(rounded[2], out[2])
    assert_close(rounded[2], expected(*arguments, None)[2], 2e-3)


@pytest.mark.parametrize("lead", [(6,), (2, 3)], ids=["T", "BS"])
@pytest.mark.parametrize("mixed", [False, True], ids=["added", "mixed"])
def test_post(lead: tuple[int, ...], mixed: bool) -> None:
    x, layer = torch.rand(*lead, N, D).half(), torch.rand(*lead, D).half()
    matrix, gates = torch.rand(*lead, N, N) if mixed else None, torch.rand(*lead, N)
    out = call("npu::npu_mhc_post", x, matrix, layer, gates)
    streams = as_float64(x)
    if matrix is not None:
        streams = np.einsum("...mn,...md->...nd", as_float64(matrix), streams)
    assert_close(out, streams + as_float64(gates)[..., None] * as_float64(layer)[..., None, :], 2e-3)


def test_sinkhorn() -> None:
    x = torch.randn(1, 12, 4, 4)
    out, *rest = call("npu::npu_mhc_sinkhorn", x)
    exact = as_float64(x)
    y = np.exp(exact - exact.max(-1, keepdims=True))
    y = y / y.sum(-1, keepdims=True) + 1e-6
    y = y / (y.sum(-2, keepdims=True) + 1e-6)
    for _ in range(19):
        y = y / (y.sum(-1, keepdims=True) + 1e-6)
        y = y / (y.sum(-2, keepdims=True) + 1e-6)
    assert_close(out, y, 1e-5)
    assert rest == [None, None]
