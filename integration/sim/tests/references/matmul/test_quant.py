# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from ascend_sim.references import limits

from ..calls import call
from ..oracle import as_float64, assert_close
from ..quant.steps import assert_same_steps, quantised
from .test_grouped import K, M, N, int8, packed

QMM, WQB = "npu::npu_quant_matmul", "npu::npu_weight_quant_batchmatmul"
FP16, BF16, FP32, INT32 = 5, 15, 6, 3


def test_int32_result_is_exact() -> None:
    x, w, bias = int8(M, 3000), int8(3000, N), torch.randint(-99, 99, (N,), dtype=torch.int32)
    out = call(QMM, x, w, torch.ones(N), bias=bias, output_dtype=INT32)
    assert np.array_equal(out.numpy(), as_float64(x) @ as_float64(w) + as_float64(bias))


@pytest.mark.parametrize("channels", [1, N])
@pytest.mark.parametrize("transposed", [False, True])
def test_int8_result(channels: int, transposed: bool) -> None:
    x, w = int8(M, K), int8(N, K).t() if transposed else int8(K, N)
    scale, offset = torch.rand(channels) * 1e-2, torch.randint(-5, 5, (channels,)).float()
    bias = torch.randint(-900, 900, (N,), dtype=torch.int32)
    out = call(QMM, x, w, scale, offset=offset, bias=bias)
    values = (as_float64(x) @ as_float64(w) + as_float64(bias)) * as_float64(scale) + as_float64(offset)
    assert_same_steps(out, quantised(values))


def test_int8_result_with_a_packed_scale() -> None:
    """npu_trans_quant_param keeps 19 bits of the scale and the offset."""
    x, w = int8(M, K), int8(K, N)
    param = torch.ops.npu.npu_trans_quant_param(torch.rand(N) * 1e-2, torch.full((N,), -7.0))
    out = call(QMM, x, w, param)
    scale = (param & 0xFFFFFFFF).int().view(torch.float32)
    assert_same_steps(out, quantised(as_float64(x) @ as_float64(w) * as_float64(scale) - 7))


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("number", [FP16, BF16])
def test_float_result_by_token(number: int, batch: tuple[int, ...]) -> None:
    x, w, scale, token = int8(*batch, M, K), int8(*batch, K, N), torch.rand(N) * 1e-3, torch.rand(M)
    bias = torch.randint(-900, 900, (N,), dtype=torch.int32)
    out = call(QMM, x, w, scale, pertoken_scale=token, bias=bias, output_dtype=number)
    values = (as_float64(x) @ as_float64(w) + as_float64(bias)) * as_float64(scale) * as_float64(token)[:, None]
    assert_close(out, values)
    shift = torch.randn(N).bfloat16()
    if number == BF16:
        out = call(QMM, x, w, scale, pertoken_scale=token, bias=shift, output_dtype=number)
        values = as_float64(x) @ as_float64(w) * as_float64(scale) * as_float64(token)[:, None] + as_float64(shift)
        assert_close(out, values)


def test_int4_by_int4() -> None:
    (x, x_values), (w, values) = packed(M, K), packed(K, 16)
    scale, token = torch.rand(16) * 1e-2, torch.rand(M)
    out = call(QMM, x, w, scale, pertoken_scale=token, output_dtype=FP16)
    assert_close(out, x_values @ values * as_float64(scale) * as_float64(token)[:, None])


def test_int8_by_int4_adds_its_offset_before_the_token() -> None:
    x, token, offset = int8(M, 512), torch.rand(M, 1) * 0.1, torch.randn(N)
    w, values = packed(512, N)
    scale = torch.rand(2, N) * 1e-3
    out = call(QMM, x, w, scale.view(torch.int32).long(), offset=offset, pertoken_scale=token, output_dtype=BF16)
    factors = np.repeat(as_float64(scale), 256, 0)
    expected = (as_float64(x) @ (values * factors) + as_float64(offset)) * as_float64(token)
    assert_close(out, expected, 1.6e-2)


@limits.as_family(limits.Family.A5)
@pytest.mark.parametrize("number", [23, 24])
def test_float8_by_token(number: int) -> None:
    dtype = torch.float8_e5m2 if number == 23 else torch.float8_e4m3fn
    x, w = torch.randn(M, K).to(dtype), torch.randn(K, N).to(dtype)
    scale, token = torch.rand(N), torch.rand(M)
    out = call(QMM, x, w, scale, pertoken_scale=token, output_dtype=BF16)
    expected = as_float64(x.float()) @ as_float64(w.float()) * as_float64(scale) * as_float64(token)[:, None]
    assert_close(out, expected, 1.6e-2)


@limits.as_family(limits.Family.A5)
def test_float8_by_block() -> None:
    x, w = torch.randn(256, 256).to(torch.float8_e4m3fn), torch.randn(256, 384).to(torch.float8_e4m3fn)
    scale, token = torch.rand(2, 3), torch.rand(2, 2)
    out = call(QMM, x, w, scale, pertoken_scale=token, output_dtype=FP32, group_sizes=[128, 128, 128])
    by_x = np.repeat(np.repeat(as_float64(token), 128, 0), 128, 1)
    by_w = np.repeat(np.repeat(as_float64(scale), 128, 0), 128, 1)
    assert_close(out, (as_float64(x.float()) * by_x) @ (as_float64(w.float()) * by_w), 1e-4)


@limits.as_family(limits.Family.A5)
def test_microscaling() -> None:
    x8, x_scale = torch.ops.npu.npu_dynamic_mx_quant(torch.randn(M, 128).bfloat16(), dst_type=24)
    w8, w_scale = torch.ops.npu.npu_dynamic_mx_quant(torch.randn(128, N).bfloat16(), axis=0, dst_type=24)
    numbers = {"scale_dtype": 293, "pertoken_scale_dtype": 293, "group_sizes": [1, 1, 32]}
    out = call(QMM, x8, w8, w_scale, pertoken_scale=x_scale, output_dtype=FP32, **numbers)
    back_x = torch.ops.npu.npu_anti_mx_quant(x8, x_scale, dst_type=6, src_type=292)
    back_w = torch.ops.npu.npu_anti_mx_quant(w8, w_scale, axis=0, dst_type=6, src_type=292)
    assert_close(out, as_float64(back_x) @ as_float64(back_w), 1e-4)


@pytest.mark.parametrize("groups", [0, 1, 2], ids=["tensor", "channel", "group"])
@pytest.mark.parametrize("four", [False, True], ids=["int8", "int4"])
@pytest.mark.parametrize("transposed", [False, True])
def test_quantised_weights(groups: int, four: bool, transposed: bool) -> None:
    x, bias = torch.randn(M, 64).half(), torch.randn(N).half()
    if four:
        w, values = packed(N, 64) if transposed else packed(64, N)
    else:
        w = int8(N, 64) if transposed else int8(64, N)
        values = as_float64(w)
    if transposed:
        w, values = w.t(), values.T
    shape = {0: (1,), 1: (1, N), 2: (2, N)}[groups]
    scale, offset = torch.rand(shape).half() * 0.1, torch.randint(-4, 4, shape).half()
    size = 32 if groups == 2 else 0
    out = call(WQB, x, w, scale, offset, bias=bias, antiquant_group_size=size)
    s, o = (np.repeat(as_float64(p), size, 0) if size else as_float64(p) for p in (scale, offset))
    assert_close(out, as_float64(x) @ ((values + o) * s) + as_float64(bias), 5e-2)


def test_quantised_weights_with_a_quantised_result() -> None:
    x, w, scale = torch.randn(M, K).half(), int8(K, N), torch.rand(N).half() * 1e-2
    quant, shift = torch.rand(N) * 20, torch.randint(-5, 5, (N,)).float()
    out = call(WQB, x, w, scale, None, quant, shift)
    values = as_float64(x) @ (as_float64(w) * as_float64(scale))
    assert_same_steps(out, quantised(values * as_float64(quant) + as_float64(shift)), 0.03)


def test_reduce_sum() -> None:
    x, w = int8(3, M, K), int8(3, K, N)
    x_scale, w_scale = torch.rand(3, M) * 1e-2, torch.rand(N).bfloat16()
    out = call("npu::npu_quant_matmul_reduce_sum", x, w, x1_scale=x_scale, x2_scale=w_scale)
    expected = ((as_float64(x) @ as_float64(w)) * as_float64(x_scale)[..., None] * as_float64(w_scale)).sum(0)
    assert_close(out, expected, 1.6e-2)
