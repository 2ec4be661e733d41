# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch

from ascend_sim.references import limits

from ..calls import call
from ..oracle import as_float64, assert_close
from ..quant.steps import assert_same_steps, quantised
from .test_grouped import ENDS, ROWS, E, K, M, N, int8, packed

TBMM, TQBMM = "npu::npu_transpose_batchmatmul", "npu::npu_transpose_quant_batchmatmul"


@pytest.mark.parametrize("mode", ["pertoken", "pertensor"])
@pytest.mark.parametrize("given", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("smoothed", [True, False])
def test_quantise_multiply_and_dequantise(mode: str, given: bool, smoothed: bool) -> None:
    """The page's formulas: x = x * smooth; scale = max(abs(x)) / 127; (round(x / scale) @ w) * w_scale * scale."""
    x, w, w_scale = torch.randn(M, K).half(), int8(N, K), torch.rand(N) * 0.1
    smooth = torch.rand(K).half() + 0.5 if smoothed else None
    x_scale = (torch.rand(M if mode == "pertoken" else 1) * 0.01 + 0.02) if given else None
    options = {"x_scale": x_scale, "smooth_scale": smooth, "quant_mode": mode}
    out = call("npu::npu_quant_matmul_dequant", x, w, w_scale, **options)
    values = as_float64(x) * (as_float64(smooth) if smooth is not None else 1)
    scale = np.abs(values).max(-1 if mode == "pertoken" else None, keepdims=True) / 127
    if x_scale is not None:
        scale = as_float64(x_scale)[:, None]
    codes = quantised(values / scale)
    expected = codes @ as_float64(w).T * as_float64(w_scale) * scale
    assert np.abs(as_float64(out) - expected).max() < 0.6  # a step of one code more or less


def test_quantise_and_multiply_by_group() -> None:
    x, w, w_scale = torch.randn(M, K).half(), int8(E, N, K), torch.rand(E, N) * 0.1
    out = call("npu::npu_quant_grouped_matmul_dequant", x, w, w_scale, torch.tensor(ENDS))
    for row, group in enumerate(ROWS):
        alone = torch.ops.npu.npu_quant_matmul_dequant(x[row : row + 1], w[group], w_scale[group])
        assert torch.equal(out[row], alone[0])


@pytest.mark.parametrize("four", [True, False], ids=["int4", "int8"])
@pytest.mark.parametrize("approximate", ["gelu_erf", "gelu_tanh"])
def test_product_with_gelu(four: bool, approximate: str) -> None:
    if four:
        (x, x_values), (w, values) = packed(M, K), packed(K, 16)
    else:
        x, w = int8(M, K), int8(K, 16)
        x_values, values = as_float64(x), as_float64(w)
    x_scale, w_scale = torch.rand(M) * 0.01, torch.rand(16).bfloat16()
    # The vendor's Meta kernel compares K of packed int4 operands that are packed along different dimensions.
    run = torch.ops.npu.npu_quant_matmul_gelu if four else partial(call, "npu::npu_quant_matmul_gelu")
    out = run(x, w, x_scale, w_scale, approximate=approximate)
    v = x_values @ values * as_float64(x_scale)[:, None] * as_float64(w_scale)
    inner = np.vectorize(math.erf)(v / np.sqrt(2))
    if approximate == "gelu_tanh":
        inner = np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))
    assert_close(out, v / 2 * (1 + inner), 1.6e-2)


def test_transposed_product_that_is_split_by_batch() -> None:
    x, w = torch.randn(M, 4, K).half(), torch.randn(4, K, N).half()
    out = call(TBMM, x, w, perm_x1=[1, 0, 2], batch_split_factor=2)
    product = np.einsum("mbk,bkn->bmn", as_float64(x), as_float64(w))
    expected = np.stack([np.concatenate(product[i : i + 2], -1) for i in (0, 2)])
    assert_close(out, expected, 2e-2)


def test_transposed_product_that_is_quantised() -> None:
    x, w = torch.randn(4, M, K).half(), torch.randn(4, K, N).half()
    scale = torch.rand(4 * N) * 10
    out = call(TBMM, x, w, scale=torch.ops.npu.npu_trans_quant_param(scale))
    product = np.einsum("bmk,bkn->mbn", as_float64(x), as_float64(w)).reshape(M, 1, -1)
    assert_same_steps(out, quantised(product * as_float64(scale)), 0.05)


@limits.as_family(limits.Family.A5)
@pytest.mark.parametrize("factor", [1, 2])
def test_transposed_float8(factor: int) -> None:
    x, w = torch.randn(M, 4, K).to(torch.float8_e4m3fn), torch.randn(4, K, N).to(torch.float8_e4m3fn)
    x_scale, w_scale = torch.rand(M), torch.rand(N)
    options = {"perm_x1": [1, 0, 2], "perm_x2": [0, 1, 2], "perm_y": [1, 0, 2], "batch_split_factor": factor}
    out = call(TQBMM, x, w, 15, x1_scale=x_scale, x2_scale=w_scale, **options)
    product = np.einsum("mbk,bkn->mbn", as_float64(x.float()), as_float64(w.float()))
    product = product * as_float64(x_scale)[:, None, None] * as_float64(w_scale)
    if factor == 2:
        product = np.stack([product[:, i : i + 2].reshape(M, -1) for i in (0, 2)])
    assert_close(out, product, 2e-2)


@limits.as_family(limits.Family.A5)
def test_transposed_microscaled() -> None:
    x8, x_scale = torch.ops.npu.npu_dynamic_mx_quant(torch.randn(M, 4, 64).bfloat16(), dst_type=24)
    w8, w_scale = torch.ops.npu.npu_dynamic_mx_quant(torch.randn(4, 64, N).bfloat16(), axis=1, dst_type=24)
    options = {"perm_x1": [1, 0, 2], "perm_x2": [0, 1, 2], "perm_y": [1, 0, 2]}
    out = call(TQBMM, x8, w8, 15, x1_scale=x_scale, x2_scale=w_scale, **options)
    back_x = torch.ops.npu.npu_anti_mx_quant(x8, x_scale, dst_type=6, src_type=292)
    back_w = torch.ops.npu.npu_anti_mx_quant(w8, w_scale, axis=1, dst_type=6, src_type=292)
    assert_close(out, np.einsum("mbk,bkn->mbn", as_float64(back_x), as_float64(back_w)), 5e-2)
