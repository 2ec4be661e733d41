# SPDX-License-Identifier: Apache-2.0
"""Products of 4-bit microscaled operands, by what their elements and scales stand for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from ascend_sim.references import limits

from ..calls import call
from ..oracle import as_float64, assert_close
from .test_grouped import ENDS, E, M, N, grouped

E4M3, E2M1, E8M0 = 292, 296, 293
NUMBERS = {"scale_dtype": E8M0, "x1_dtype": E2M1, "x2_dtype": E2M1, "pertoken_scale_dtype": E8M0}


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with limits.as_family(limits.Family.A5):
        yield


def quantised(values: torch.Tensor, axis: int, number: int = E2M1) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    elements, scale = torch.ops.npu.npu_dynamic_mx_quant(values.bfloat16(), axis=axis, dst_type=number)
    back = torch.ops.npu.npu_anti_mx_quant(elements, scale, axis=axis, dst_type=6, src_type=number)
    return elements, scale, as_float64(back)


def test_packed_along_n() -> None:
    x, x_scale, left = quantised(torch.randn(M, 64), -1)
    w, w_scale, right = quantised(torch.randn(64, N), 0)
    out = call(
        "npu::npu_quant_matmul",
        x,
        w,
        w_scale,
        pertoken_scale=x_scale,
        output_dtype=6,
        group_sizes=[1, 1, 32],
        **NUMBERS,
    )
    assert_close(out, left @ right, 1e-4)


def test_packed_along_k_and_transposed() -> None:
    x, x_scale, left = quantised(torch.randn(M, 64), -1)
    w, w_scale, right = quantised(torch.randn(N, 64), -1)
    out = call(
        "npu::npu_quant_matmul",
        x,
        w.t(),
        w_scale.transpose(0, 1),
        pertoken_scale=x_scale,
        output_dtype=6,
        group_sizes=[1, 1, 32],
        **NUMBERS,
    )
    assert_close(out, left @ right.T, 1e-4)


@pytest.mark.parametrize("mixed", [True, False], ids=["float8-by-float4", "float4"])
def test_groups(mixed: bool) -> None:
    x, x_scale, left = quantised(torch.randn(M, 64), -1, E4M3 if mixed else E2M1)
    w, w_scale, right = quantised(torch.randn(E, 64, N), 1)
    options = {} if mixed else {"x_dtype": E2M1}
    arguments = {
        "scale": [w_scale],
        "per_token_scale": [x_scale],
        "group_list": torch.tensor(ENDS),
        "split_item": 3,
        "group_type": 0,
        "output_dtype": 15,
        "weight_dtype": E2M1,
        "scale_dtype": E8M0,
        "per_token_scale_dtype": E8M0,
        **options,
    }
    # The vendor's Meta kernel counts columns of float8 by float4 as if the weight were not packed.
    run = torch.ops.npu.npu_grouped_matmul if mixed else None
    (out,) = run([x], [w], **arguments) if run else call("npu::npu_grouped_matmul", [x], [w], **arguments)
    assert_close(out[:6], grouped(left, right), 2e-2)
