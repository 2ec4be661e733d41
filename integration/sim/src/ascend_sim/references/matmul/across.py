# SPDX-License-Identifier: Apache-2.0
"""Products joined with a collective over the ranks of an HCCL group.

A rank's part is rounded to the result's dtype, in which it travels; parts are added up in float32.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.matmul.products import Scales, dequantised_weight, elements, value_of
from ascend_sim.references.quant.dtypes import float_dtype
from ascend_sim.references.ranks import Ranks
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_doc


def _sum(op: str, reduce_op: str) -> None:
    if reduce_op != "sum":
        raise limits.refuse(op, "reduce_op", reduce_op, "sum")


def _dtype(x: Tensor, scale: Tensor | None, wanted: torch.dtype | None) -> torch.dtype:
    """The result's dtype: x's unless quantised; then float16 for packed scales, else as wanted or bfloat16."""
    if scale is None:
        return x.dtype
    return torch.float16 if scale.dtype == torch.int64 else wanted or torch.bfloat16


@reference(
    "npu::npu_mm_all_reduce_base",
    source=wheel_doc("npu_mm_all_reduce_base")
    + "; "
    + cann_doc("ops-transformer", "mc2/matmul_all_reduce/docs/aclnnMatmulAllReduceV2.md"),
    grade=Grade.DOCUMENTED,
    note="not simulated: quantised communication, microscaling",
)
def npu_mm_all_reduce_base(
    x1: Tensor,
    x2: Tensor,
    hcom: str,
    *,
    reduce_op: str = "sum",
    bias: Tensor | None = None,
    antiquant_scale: Tensor | None = None,
    antiquant_offset: Tensor | None = None,
    x3: Tensor | None = None,
    dequant_scale: Tensor | None = None,
    pertoken_scale: Tensor | None = None,
    comm_quant_scale_1: Tensor | None = None,
    comm_quant_scale_2: Tensor | None = None,
    antiquant_group_size: int = 0,
    comm_turn: int = 0,
    group_sizes: list[int] | None = None,
    y_dtype: int | None = None,
    x1_dtype: int | None = None,
    x2_dtype: int | None = None,
    dequant_scale_dtype: int | None = None,
    pertoken_scale_dtype: int | None = None,
    comm_quant_mode: int = 0,
    comm_mode: str | None = None,
) -> Tensor:
    """Sum over ranks of ``x1 @ x2 + bias + x3``; x1 [..., K], x2 [K, N], both or only x2 quantised."""
    op = "npu_mm_all_reduce_base"
    _sum(op, reduce_op)
    if comm_quant_scale_1 is not None or comm_quant_mode:
        raise limits.not_simulated(op, "comm_quant_scale_1, comm_quant_mode", "given")
    if dequant_scale is not None and y_dtype is not None:
        dtype = float_dtype(op, "y_dtype", y_dtype)
    elif dequant_scale is not None:
        dtype = torch.bfloat16 if dequant_scale.dtype == torch.bfloat16 else torch.float16
    else:
        dtype = x1.dtype
    rows = x1.flatten(0, -2)
    if antiquant_scale is not None:
        values = rows.float() @ dequantised_weight(elements(x2), antiquant_scale, antiquant_offset)
        values = values if bias is None else values + bias.float()
    else:
        values = value_of(rows, x2, Scales(dequant_scale, pertoken_scale, bias))
    values = values.view(*x1.shape[:-1], -1)
    if x3 is not None:
        values = values + x3.float()
    return Ranks(op, hcom).sum(values.to(dtype).float()).to(dtype)


@reference("npu::npu_mm_reduce_scatter_base", source=wheel_doc("npu_mm_reduce_scatter_base"), grade=Grade.DOCUMENTED)
def npu_mm_reduce_scatter_base(
    input: Tensor,
    x2: Tensor,
    hcom: str,
    world_size: int,
    *,
    reduce_op: str = "sum",
    bias: Tensor | None = None,
    x1_scale: Tensor | None = None,
    x2_scale: Tensor | None = None,
    comm_turn: int = 0,
    output_dtype: torch.dtype | None = None,
    comm_mode: str | None = None,
) -> Tensor:
    """This rank's rows of the sum over ranks of ``input @ x2``: [M / world_size, N]."""
    op = "npu_mm_reduce_scatter_base"
    _sum(op, reduce_op)
    ranks = Ranks(op, hcom, world_size)
    if len(input) % ranks.size:
        raise limits.refuse(op, "input.shape[0]", len(input), f"a multiple of {ranks.size}")
    dtype = _dtype(input, x2_scale, output_dtype)
    part = value_of(input, x2, Scales(x2_scale, x1_scale, bias)).to(dtype)
    return ranks.sum(part.float()).chunk(ranks.size)[ranks.rank].to(dtype)


@reference("npu::npu_all_gather_base_mm", source=wheel_doc("npu_all_gather_base_mm"), grade=Grade.DOCUMENTED)
def npu_all_gather_base_mm(
    input: Tensor,
    x2: Tensor,
    hcom: str,
    world_size: int,
    *,
    bias: Tensor | None = None,
    x1_scale: Tensor | None = None,
    x2_scale: Tensor | None = None,
    gather_index: int = 0,
    gather_output: bool = True,
    comm_turn: int = 0,
    output_dtype: torch.dtype | None = None,
    comm_mode: str | None = None,
) -> tuple[Tensor, Tensor]:
    """All ranks' ``input`` times ``x2``, and all ranks' ``input`` (empty without ``gather_output``)."""
    op = "npu_all_gather_base_mm"
    if gather_index:
        raise limits.refuse(op, "gather_index", gather_index, "0")
    ranks = Ranks(op, hcom, world_size)
    gathered = ranks.gather(input).flatten(0, 1)
    token = None if x1_scale is None else ranks.gather(x1_scale).flatten(0, 1)
    values = value_of(gathered, x2, Scales(x2_scale, token, bias))
    return values.to(_dtype(input, x2_scale, output_dtype)), gathered if gather_output else input.new_empty(0)
