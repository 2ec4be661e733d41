# SPDX-License-Identifier: Apache-2.0
"""Batched products of operands that are permuted before and after."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.matmul.products import is_e8m0
from ascend_sim.references.quant.dtypes import float_dtype
from ascend_sim.references.quant.integers import saturate
from ascend_sim.references.quant.microscale import E4M3, E5M2, dequantise
from ascend_sim.references.quant.weight import offset_of, scale_of
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_doc, wheel_meta

_FP8 = {torch.float8_e4m3fn: E4M3, torch.float8_e5m2: E5M2}


def _split(values: Tensor, factor: int) -> Tensor:
    """[M, B, N] as [factor, M, B * N / factor], a share of the batch each."""
    if factor == 1:
        return values
    rows, batch, columns = values.shape
    return values.view(rows, factor, batch // factor * columns).transpose(0, 1).contiguous()


@reference(
    "npu::npu_transpose_batchmatmul",
    source=f"{wheel_doc('npu_transpose_batchmatmul')}; {wheel_meta('npu_transpose_batchmatmul')}",
    grade=Grade.DOCUMENTED,
)
def npu_transpose_batchmatmul(
    input: Tensor,
    weight: Tensor,
    *,
    bias: Tensor | None = None,
    scale: Tensor | None = None,
    perm_x1: list[int] | None = None,
    perm_x2: list[int] | None = None,
    perm_y: list[int] | None = None,
    batch_split_factor: int | None = 1,
) -> Tensor:
    """Batched product of ``input`` permuted by ``perm_x1`` and ``weight`` by ``perm_x2``; permuted by ``perm_y``.

    Args:
        scale: Packed scales [B * N] that quantise the result to int8 [M, 1, B * N].
        batch_split_factor: Cuts the batch of the result [M, B, N] into leading parts: [factor, M, B * N / factor].
    """
    op = "npu_transpose_batchmatmul"
    if bias is not None:
        raise limits.refuse(op, "bias", "given", "None")
    product = torch.bmm(input.permute(perm_x1 or [0, 1, 2]).float(), weight.permute(perm_x2 or [0, 1, 2]).float())
    values = product.permute(perm_y or [1, 0, 2]).contiguous()
    if scale is None:
        return _split(values.to(input.dtype), batch_split_factor or 1)
    flat = values.flatten(1) * scale_of(scale) + offset_of(scale)
    return saturate(flat, torch.int8).unsqueeze(1)


@reference(
    "npu::npu_transpose_quant_batchmatmul",
    source=wheel_meta("npu_transpose_quant_batchmatmul")
    + "; "
    + cann_doc("ops-nn", "matmul/transpose_quant_batch_mat_mul/docs/aclnnTransposeQuantBatchMatMul.md"),
    grade=Grade.DOCUMENTED,
    note="float8 with scales by row and column, or microscaled",
)
def npu_transpose_quant_batchmatmul(
    x1: Tensor,
    x2: Tensor,
    dtype: int,
    *,
    bias: Tensor | None = None,
    x1_scale: Tensor | None = None,
    x2_scale: Tensor | None = None,
    group_sizes: list[int] | None = None,
    perm_x1: list[int] | None = None,
    perm_x2: list[int] | None = None,
    perm_y: list[int] | None = None,
    batch_split_factor: int | None = 1,
    x1_dtype: int | None = None,
    x2_dtype: int | None = None,
) -> Tensor:
    """Batched product of float8 x1 [M, B, K] and x2 [B, K, N] times scales [M] and [N]: [M, B, N]."""
    op = "npu_transpose_quant_batchmatmul"
    if bias is not None or x1_scale is None or x2_scale is None or x1.dtype not in _FP8 or x2.dtype not in _FP8:
        raise limits.refuse(op, "bias, x1_scale, x2_scale", (bias, x1_scale, x2_scale), "None and scales, for float8")
    result, first, second = float_dtype(op, "dtype", dtype), perm_x1 or [1, 0, 2], perm_x2 or [0, 1, 2]
    if is_e8m0(x2_scale):
        if second != [0, 1, 2]:
            raise limits.not_simulated(op, "perm_x2", second)
        left = dequantise(x1, x1_scale, _FP8[x1.dtype]).permute(first)
        values = torch.bmm(left, dequantise(x2, x2_scale, _FP8[x2.dtype], axis=-2))
    else:
        values = torch.bmm(x1.float().permute(first), x2.float().permute(second))
        values = values * x1_scale.view(1, -1, 1) * x2_scale.view(1, 1, -1)
    return _split(values.permute(perm_y or [1, 0, 2]).contiguous().to(result), batch_split_factor or 1)
