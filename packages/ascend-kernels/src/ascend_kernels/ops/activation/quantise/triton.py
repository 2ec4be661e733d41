"""Triton kernel: int8 values and a scale per row, of a tensor or of its gated activation."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch, next_power_of_two
from ascend_kernels.ops.activation.elementwise.triton import as_rows, combine, load_pair
from ascend_kernels.ops.activation.quantise.plan import plan_quant
from ascend_kernels.target import current_target


@triton.jit
def values_of(
    x_row,
    column,
    inside,
    COLUMNS: tl.constexpr,
    GATED: tl.constexpr,
    ALPHA: tl.constexpr,
    BIAS: tl.constexpr,
    LIMIT: tl.constexpr,
):
    if GATED:
        gate, value = load_pair(x_row, column, inside, COLUMNS)
        result = tl.where(inside, combine(gate, value, "silu", ALPHA, BIAS, LIMIT, False), 0.0)
    else:
        result = tl.load(x_row + column, mask=inside, other=0.0).to(tl.float32)
    return result


@triton.jit
def to_int8(value, scale):
    quotient = value / tl.where(scale > 0, scale, 1.0)
    quotient = tl.where(quotient > 127.0, 127.0, tl.where(quotient < -127.0, -127.0, quotient))
    # Adding and taking away 1.5 * 2**23 rounds to the nearest integer, ties to even, as torch.round does.
    return ((quotient + 12582912.0) - 12582912.0).to(tl.int8)


@triton.jit(do_not_specialize=["all_rows", "groups"])
def quantise_kernel(
    x,
    group_list,
    quantised,
    scales,
    all_rows,
    groups,
    x_stride,
    GATED: tl.constexpr,
    ALPHA: tl.constexpr,
    BIAS: tl.constexpr,
    LIMIT: tl.constexpr,
    GROUP_LIST: tl.constexpr,
    GROUPS: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
    ONE_PASS: tl.constexpr,
):
    rows = all_rows
    if GROUP_LIST == "cumulative":
        rows = tl.minimum(tl.load(group_list + groups - 1).to(tl.int32), all_rows)
    if GROUP_LIST == "counts":
        group = tl.arange(0, GROUPS)
        counts = tl.load(group_list + group, mask=group < groups, other=0).to(tl.int32)
        rows = tl.minimum(tl.sum(counts, axis=0), all_rows)
    lane = tl.arange(0, BLOCK)
    # One row at a time: the conversion to int8 needs no scratch memory for vectors, and much for matrices.
    # Row numbers have 64 bits, since offsets of rows may pass 2**31 elements.
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        x_row = x + row * x_stride
        result_row = quantised + row * COLUMNS
        if ONE_PASS:
            inside = lane < COLUMNS
            value = values_of(x_row, lane, inside, COLUMNS, GATED, ALPHA, BIAS, LIMIT)
            scale = tl.max(tl.abs(value), axis=0) / 127.0
            tl.store(result_row + lane, to_int8(value, scale), mask=inside)
        else:
            largest = tl.zeros([BLOCK], dtype=tl.float32)
            for start in range(0, COLUMNS, BLOCK):
                inside = start + lane < COLUMNS
                value = values_of(x_row, start + lane, inside, COLUMNS, GATED, ALPHA, BIAS, LIMIT)
                largest = tl.maximum(largest, tl.abs(value))
            scale = tl.max(largest, axis=0) / 127.0
            for start in range(0, COLUMNS, BLOCK):
                inside = start + lane < COLUMNS
                value = values_of(x_row, start + lane, inside, COLUMNS, GATED, ALPHA, BIAS, LIMIT)
                tl.store(result_row + start + lane, to_int8(value, scale), mask=inside)
        tl.store(scales + row, scale)


def quantise_rows(
    x: torch.Tensor,
    *,
    gated: bool,
    alpha: float = 1.0,
    bias: float = 0.0,
    limit: float = 0.0,
    group_list: torch.Tensor | None = None,
    cumulative: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 rows and their fp32 scales; rows behind the groups' total stay unwritten."""
    columns = x.shape[-1] // 2 if gated else x.shape[-1]
    quantised = torch.empty((*x.shape[:-1], columns), dtype=torch.int8, device=x.device)
    scales = torch.empty(x.shape[:-1], dtype=torch.float32, device=x.device)
    groups = 0 if group_list is None else group_list.shape[0]
    if quantised.numel() == 0 or (group_list is not None and groups == 0):
        return quantised, scales
    matrix = as_rows(x)
    rows = matrix.shape[0]
    plan = plan_quant(current_target(x.device), rows, columns, x.itemsize * (1 + gated) + 1, 20 if gated else 12)
    launch(
        quantise_kernel,
        (plan.programs,),
        matrix,
        group_list,
        quantised,
        scales,
        rows,
        groups,
        matrix.stride(0),
        GATED=gated,
        ALPHA=alpha,
        BIAS=bias,
        LIMIT=limit,
        GROUP_LIST="none" if group_list is None else "cumulative" if cumulative else "counts",
        GROUPS=next_power_of_two(groups),
        COLUMNS=columns,
        BLOCK=plan.block,
        ONE_PASS=plan.one_pass,
        num_warps=plan.warps,
        multibuffer=plan.multibuffer,
    )
    return quantised, scales
