# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from ascend_sim.references import limits

from ..calls import call
from ..oracle import as_float64, assert_close
from ..quant.steps import assert_same_steps, by_token
from .test_grouped import COUNTS, ENDS, ROWS, E, K, M, N, grouped, int8, lists, packed

V2 = "npu::npu_grouped_matmul_swiglu_quant_v2"


def swiglu(values: np.ndarray) -> np.ndarray:
    left, right = np.split(values, 2, -1)
    return left / (1 + np.exp(-left)) * right


def check(y: torch.Tensor, scale: torch.Tensor, values: np.ndarray) -> None:
    """By the page: the scale is max|S| / 127 of S = swiglu(values)."""
    steps, expected = by_token(values)
    np.testing.assert_allclose(as_float64(scale)[:6], expected, rtol=2e-4)
    assert_same_steps(y[:6], steps, 0.05)


def test_int8_by_running_sums() -> None:
    x, w, scale, token = int8(M, K), int8(E, K, N), torch.rand(E, N) * 1e-2, torch.rand(M) * 1e-1
    y, out_scale, _ = call("npu::npu_grouped_matmul_swiglu_quant", x, w, torch.tensor(ENDS), scale, token)
    values = grouped(as_float64(x), as_float64(w)) * as_float64(scale)[ROWS] * as_float64(token)[:6, None]
    check(y, out_scale, swiglu(values))
    again, _ = call(V2, x, [w], [scale], token, torch.tensor(COUNTS), group_list_type=1)
    assert torch.equal(again, y)


def test_int8_by_int4_with_its_assistant() -> None:
    """As the page has it: x = 16 high + low + 8, so ((16 high + low) @ w) * scale + assist, and assist = 8 sum."""
    x, token = int8(M, K), torch.rand(M) * 1e-1
    w, values = packed(E, K, 16)
    scale = torch.rand(E, 16) * 1e-2
    assist = torch.tensor(8 * values.sum(1) * as_float64(scale)).float()
    y, out_scale = call(V2, x, [w], [scale], token, torch.tensor(ENDS), weight_assist_matrix=[assist])
    expected = grouped(as_float64(x), values) * as_float64(scale)[ROWS] * as_float64(token)[:6, None]
    check(y, out_scale, swiglu(expected))


@pytest.mark.parametrize("by_column", [True, False])
def test_int4_by_int4_is_smoothed(by_column: bool) -> None:
    x, x_values = packed(M, K)
    w, values = packed(E, K, 16)
    scale, token = torch.rand(E, 16) * 0.1, torch.rand(M)
    smooth = torch.rand(E, 8) + 0.5 if by_column else torch.rand(E) + 0.5
    y, out_scale = call(V2, x, [w], [scale], token, torch.tensor(ENDS), smooth_scale=smooth)
    product = grouped(x_values, values) * as_float64(scale)[ROWS] * as_float64(token)[:6, None]
    factor = as_float64(smooth)[ROWS] if by_column else as_float64(smooth)[ROWS][:, None]
    check(y, out_scale, swiglu(product) * factor)


@limits.as_family(limits.Family.A5)
def test_microscaled() -> None:
    x8, x_scale = torch.ops.npu.npu_dynamic_mx_quant(torch.randn(M, 64).bfloat16(), dst_type=24)
    w8, w_scale = torch.ops.npu.npu_dynamic_mx_quant(torch.randn(E, 64, 128).bfloat16(), axis=1, dst_type=24)
    y, scale = call(
        V2,
        x8,
        [w8],
        [w_scale],
        x_scale,
        torch.tensor(ENDS),
        dequant_mode=2,
        quant_mode=2,
        quant_dtype=24,
        weight_scale_dtype=293,
        x_scale_dtype=293,
    )
    back_x = torch.ops.npu.npu_anti_mx_quant(x8, x_scale, dst_type=6, src_type=292)
    back_w = torch.ops.npu.npu_anti_mx_quant(w8, w_scale, axis=1, dst_type=6, src_type=292)
    out = torch.ops.npu.npu_anti_mx_quant(y[:6], scale[:6], dst_type=6, src_type=292)
    expected = swiglu(grouped(as_float64(back_x), as_float64(back_w)))
    largest = np.abs(expected).reshape(6, 2, 32).max(-1).repeat(32, -1)
    assert (np.abs(as_float64(out) - expected) <= np.abs(expected) / 8 + largest / 200).all()


@pytest.mark.parametrize("kind", [0, 1])
def test_finalize_routing_adds_rows_up(kind: int) -> None:
    """The vendor's golden: out[row_index] += logit * (x @ w) * scale * pertoken, onto the shared expert's part."""
    x, w = int8(6, K), int8(E, K, N)
    scale, token, logit = torch.rand(E, N) * 1e-2, torch.rand(6), torch.rand(6)
    shared, index = torch.randn(2, N).bfloat16(), torch.tensor([0, 3, 1, 0, 2, 3])
    out = call(
        "npu::npu_grouped_matmul_finalize_routing",
        x,
        w,
        lists(kind),
        scale=scale,
        pertoken_scale=token,
        shared_input=shared,
        logit=logit,
        row_index=index,
        dtype=torch.float32,
        shared_input_weight=0.5,
        shared_input_offset=1,
        output_bs=4,
        group_list_type=kind,
    )
    rows = grouped(as_float64(x), as_float64(w)) * as_float64(scale)[ROWS]
    rows *= (as_float64(token) * as_float64(logit))[:, None]
    expected = np.zeros((4, N))
    expected[1:3] = as_float64(shared) * 0.5
    np.add.at(expected, index.numpy(), rows)
    assert_close(out, expected, 1e-4)


@pytest.mark.parametrize("kind", [0, 1])
def test_add_accumulates_by_group(kind: int) -> None:
    x, w, start = torch.randn(6, 4).half(), torch.randn(6, N).half(), torch.randn(E, 4, N)
    bounds = [(0, 2), (2, 2), (2, 6)]
    expected = as_float64(start) + np.stack([as_float64(x)[a:b].T @ as_float64(w)[a:b] for a, b in bounds])
    if kind == 0:
        assert_close(call("npu::npu_grouped_matmul_add", start, x, w, lists(0)), expected)
    out = call("npu::npu_grouped_matmul_add_", start, x, w, lists(kind), group_list_type=kind)
    assert out.data_ptr() == start.data_ptr()
    assert_close(start, expected)
