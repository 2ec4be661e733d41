# SPDX-License-Identifier: Apache-2.0
"""Products of quantised matrices, and of floats with quantised weights."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.matmul.products import (
    Scales,
    dequantised_weight,
    elements,
    expand_blocks,
    float4,
    integer_product,
    is_e8m0,
    value_of,
)
from ascend_sim.references.quant.dtypes import plain_dtype
from ascend_sim.references.quant.integers import saturate
from ascend_sim.references.quant.weight import offset_of, scale_of
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_doc

_BLOCK = 128


def _int4_weight(x1: Tensor, x2: Tensor, scale: Tensor, offset: Tensor | None, token: Tensor | None) -> Tensor:
    """``((x1 @ (x2 * scale)) + offset) * token`` of int8 x1 and int4 x2."""
    values = x1.float() @ dequantised_weight(x2, scale_of(scale), None)
    if offset is not None:
        values = values + offset.float()
    return values if token is None else values * token.reshape(-1, 1)


def _less_offset(x1: Tensor, x2: Tensor, scale: Tensor, offset: Tensor, token: Tensor) -> Tensor:
    """``token * scale * (x1 @ x2 - x1 @ offset)`` of int4 matrices, scale and offset [G, N] by group of K."""
    weight = dequantised_weight(x2, scale, -offset.float())
    return (x1.float() @ weight) * token.reshape(-1, 1)


def _blocks(x1: Tensor, x2: Tensor, scale: Tensor, token: Tensor, bias: Tensor | None) -> Tensor:
    """int8 with token scales [M, K / 128] and weight scales [K / 128, N / 128]."""
    (m, k), n = x1.shape, x2.shape[-1]
    high = _BLOCK if len(token) != m else 1
    left = x1.float() * expand_blocks(token, m, k, (high, _BLOCK))
    values = left @ (x2.float() * expand_blocks(scale, k, n, (_BLOCK, _BLOCK)))
    return values if bias is None else values + bias.float()


@reference(
    "npu::npu_quant_matmul",
    source=op_plugin_test("test_npu_quant_matmul")
    + "; "
    + cann_doc("ops-nn", "matmul/quant_batch_matmul_v4/docs/aclnnQuantMatmulV5.md"),
    grade=Grade.DOCUMENTED,
    note="not simulated: y_scale, hifloat8",
)
def npu_quant_matmul(
    x1: Tensor,
    x2: Tensor,
    scale: Tensor,
    *,
    offset: Tensor | None = None,
    pertoken_scale: Tensor | None = None,
    bias: Tensor | None = None,
    output_dtype: int | None = None,
    x1_dtype: int | None = None,
    x2_dtype: int | None = None,
    pertoken_scale_dtype: int | None = None,
    scale_dtype: int | None = None,
    group_sizes: list[int] | None = None,
    y_scale: Tensor | None = None,
) -> Tensor:
    """``x1 @ x2`` of int8, packed int4 (int32), float8 or float4, times its scales; int8 by default.

    Args:
        scale: By tensor, channel, group of K or block; int64 as :func:`npu_trans_quant_param` packs it; E8M0.
        offset: Added to an int8 result; for int8 by int4 to the product before ``pertoken_scale``.
        bias: Before the scales if int32, after them if float.
    """
    op = "npu_quant_matmul"
    if y_scale is not None:
        raise limits.not_simulated(op, "y_scale", "given")
    dtype = plain_dtype(op, "output_dtype", output_dtype)
    kinds = float4(op, "x1_dtype", x1_dtype), float4(op, "x2_dtype", x2_dtype if x2_dtype != 285 else None)
    if is_e8m0(scale):
        values = value_of(x1, x2, Scales(scale, pertoken_scale, bias), *kinds)
        return values.to(dtype)
    left, right = elements(x1), elements(x2)
    if dtype == torch.int32:
        total = integer_product(left, right)
        return total if bias is None else total + bias
    if x1.dtype == torch.int8 and x2.dtype == torch.int32:
        return _int4_weight(left, right, scale, offset, pertoken_scale).to(dtype)
    if x1.dtype == x2.dtype == torch.int32 and offset is not None and pertoken_scale is not None:
        return _less_offset(left, right, scale, offset, pertoken_scale).to(dtype)
    grid = pertoken_scale is not None and pertoken_scale.dim() == 2 and pertoken_scale.shape[1] > 1
    if left.dtype == torch.int8 and grid and pertoken_scale is not None:
        return _blocks(left, right, scale, pertoken_scale, bias).to(dtype)
    values = value_of(left, right, Scales(scale, pertoken_scale, bias))
    if dtype != torch.int8:
        return values.to(dtype)
    if offset is not None:
        values = values + offset.float()
    elif scale.dtype == torch.int64:
        values = values + offset_of(scale).reshape(-1)
    return saturate(values, dtype)


@reference(
    "npu::npu_weight_quant_batchmatmul",
    source=op_plugin_test("test_npu_weight_quant_batchmatmul")
    + "; "
    + cann_doc("ops-nn", "matmul/weight_quant_batch_matmul_v2/docs/aclnnWeightQuantBatchMatmulV2.md"),
    grade=Grade.DOCUMENTED,
)
def npu_weight_quant_batchmatmul(
    x: Tensor,
    weight: Tensor,
    antiquant_scale: Tensor,
    antiquant_offset: Tensor | None = None,
    quant_scale: Tensor | None = None,
    quant_offset: Tensor | None = None,
    bias: Tensor | None = None,
    antiquant_group_size: int = 0,
    inner_precise: int = 0,
    weight_dtype: int | None = None,
) -> Tensor:
    """``x @ ((weight + antiquant_offset) * antiquant_scale) + bias``, quantised to int8 if ``quant_scale`` is given.

    Args:
        weight: int8 or packed int4 [K, N], also transposed.
        antiquant_scale: [1], [N], or [K / antiquant_group_size, N].
    """
    op = "npu_weight_quant_batchmatmul"
    kind = float4(op, "weight_dtype", weight_dtype)
    if kind is not None:
        raise limits.not_simulated(op, "weight_dtype", weight_dtype)
    values = x.float() @ dequantised_weight(elements(weight), scale_of(antiquant_scale), antiquant_offset)
    if bias is not None:
        values = values + bias.float()
    if quant_scale is None:
        return values.to(x.dtype)
    values = values * scale_of(quant_scale).reshape(-1)
    if quant_offset is not None:
        values = values + quant_offset.float().reshape(-1)
    elif quant_scale.dtype == torch.int64:
        values = values + offset_of(quant_scale).reshape(-1)
    return saturate(values, torch.int8)


@reference(
    "npu::npu_quant_matmul_reduce_sum",
    source=wheel_doc("npu_quant_matmul_reduce_sum"),
    grade=Grade.DOCUMENTED,
)
def npu_quant_matmul_reduce_sum(
    x1: Tensor, x2: Tensor, *, x1_scale: Tensor | None = None, x2_scale: Tensor | None = None
) -> Tensor:
    """Sum over the batch of int8 x1 [B, M, K] times x2 [B, K, N] and their scales [B, M] and [N]; bfloat16 [M, N]."""
    if x1_scale is None or x2_scale is None:
        raise limits.refuse("npu_quant_matmul_reduce_sum", "x1_scale, x2_scale", None, "tensors")
    values = integer_product(x1, x2).float() * x1_scale.unsqueeze(-1) * x2_scale.float()
    return values.sum(0).to(torch.bfloat16)
