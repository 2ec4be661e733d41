"""Triton kernel: a tile of one expert's results at a time, with scales, bias and activation before it is written."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.activation.elementwise.triton import combine
from ascend_kernels.ops.fla.chunk_index.triton import chunk_index_triton
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.ops.moe.grouped_matmul.plan import plan_grouped
from ascend_kernels.target import current_target


@triton.jit
def load_weight(matrix, row_stride, depth, column, DEPTH: tl.constexpr, COLUMNS: tl.constexpr):
    return tl.load(
        matrix + depth[:, None] * row_stride + column[None, :],
        mask=(depth[:, None] < DEPTH) & (column[None, :] < COLUMNS),
        other=0.0,
    )


@triton.jit
def load_x(rows, x_row, row, count, depth, begin, DEPTH: tl.constexpr):
    return tl.load(
        rows + row[:, None] * x_row + begin + depth[None, :],
        mask=(row[:, None] < count) & (depth[None, :] < DEPTH),
        other=0.0,
    )


@triton.jit
def product(
    rows, x_row, count, matrix, matrix_row, scales, bias, row_scale, column,
    FORMAT: tl.constexpr, SCALED: tl.constexpr, GROUP: tl.constexpr, HAS_BIAS: tl.constexpr, DEPTH: tl.constexpr,
    COLUMNS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """fp32 ``[BM, BN]``: rows of x times columns of one expert's matrix, scaled, with its bias."""
    row = tl.arange(0, BM)
    lane = tl.arange(0, BK)
    inside = column < COLUMNS
    sums = tl.zeros([BM, BN], dtype=tl.int32 if FORMAT == "int8" else tl.float32)
    # Of a packed weight, a byte holds an element of the upper and one of the lower half of the sum.
    for start in tl.range(0, DEPTH, BK, num_stages=STAGES):
        depth = start + lane
        tile = load_weight(matrix, matrix_row, depth, column, DEPTH, COLUMNS)
        values = load_x(rows, x_row, row, count, depth, 0, DEPTH)
        if FORMAT == "int8":
            sums += tl.dot(values, tile)
        elif FORMAT == "int4":
            packed = tile.to(tl.int32)
            low = ((packed & 15) - 8).to(values.dtype)
            high = (packed >> 4).to(values.dtype)
            behind = load_x(rows, x_row, row, count, depth, DEPTH, DEPTH)
            first = tl.dot(values, low, input_precision="ieee")
            second = tl.dot(behind, high, input_precision="ieee")
            if GROUP > 0:
                low_scale = tl.load(scales + (start // GROUP) * COLUMNS + column, mask=inside, other=0.0)
                high_scale = tl.load(scales + ((DEPTH + start) // GROUP) * COLUMNS + column, mask=inside, other=0.0)
                first *= low_scale.to(tl.float32)[None, :]
                second *= high_scale.to(tl.float32)[None, :]
            sums += first + second
        elif FORMAT == "weight_int8":
            part = tl.dot(values, tile.to(values.dtype), input_precision="ieee")
            if GROUP > 0:
                scale = tl.load(scales + (start // GROUP) * COLUMNS + column, mask=inside, other=0.0)
                part *= scale.to(tl.float32)[None, :]
            sums += part
        else:
            sums += tl.dot(values, tile, input_precision="ieee")
    result = sums.to(tl.float32)
    if SCALED and GROUP == 0:
        result *= tl.load(scales + column, mask=inside, other=0.0).to(tl.float32)[None, :]
    if FORMAT == "int8":
        result *= tl.load(row_scale + row, mask=row < count, other=0.0).to(tl.float32)[:, None]
    if HAS_BIAS:
        result += tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)[None, :]
    return result


@triton.jit(do_not_specialize=["tasks", "slices", "programs"])
def grouped_matmul_kernel(
    x,
    weight,
    x_scale,
    weight_scale,
    bias,
    y,
    sequence,
    first,
    end,
    tasks,
    slices,
    programs,
    x_row,
    weight_expert,
    weight_row,
    scale_expert,
    FORMAT: tl.constexpr,
    SCALED: tl.constexpr,
    GROUP: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SWIGLU: tl.constexpr,
    ALPHA: tl.constexpr,
    UP_BIAS: tl.constexpr,
    LIMIT: tl.constexpr,
    DEPTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
):
    # Tiles that share rows follow one another, then tiles that share an expert: its weight stays in the cache.
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        chunk = task // slices
        begin = tl.load(first + chunk)
        count = tl.load(end + chunk) - begin
        if count > 0:
            expert = as_int64(tl.load(sequence + chunk))
            column = (task - chunk * slices) * BN + tl.arange(0, BN)
            rows = x + as_int64(begin) * x_row
            matrix = weight + expert * weight_expert
            scales = weight_scale
            if SCALED:
                scales = weight_scale + expert * scale_expert
            shift = bias
            if HAS_BIAS:
                shift = bias + expert * COLUMNS
            row_scale = x_scale
            if FORMAT == "int8":
                row_scale = x_scale + begin
            if SWIGLU:
                half = COLUMNS // 2
                gate = product(
                    rows, x_row, count, matrix, weight_row, scales, shift, row_scale, column,
                    FORMAT, SCALED, GROUP, HAS_BIAS, DEPTH, COLUMNS, BM, BN, BK, STAGES,
                )  # fmt: skip
                up = product(
                    rows, x_row, count, matrix, weight_row, scales, shift, row_scale, column + half,
                    FORMAT, SCALED, GROUP, HAS_BIAS, DEPTH, COLUMNS, BM, BN, BK, STAGES,
                )  # fmt: skip
                result = combine(gate, up, "silu", ALPHA, UP_BIAS, LIMIT, False)
                width = half
            else:
                result = product(
                    rows, x_row, count, matrix, weight_row, scales, shift, row_scale, column,
                    FORMAT, SCALED, GROUP, HAS_BIAS, DEPTH, COLUMNS, BM, BN, BK, STAGES,
                )  # fmt: skip
                width = COLUMNS
            row = tl.arange(0, BM)
            tl.store(
                y + as_int64(begin) * width + row[:, None] * width + column[None, :],
                result.to(y.dtype.element_ty),
                mask=(row[:, None] < count) & (column[None, :] < width),
            )


def grouped_matmul_triton(
    x: torch.Tensor,
    weight: torch.Tensor,
    offsets: torch.Tensor,
    x_scale: torch.Tensor | None,
    weight_scale: torch.Tensor | None,
    bias: torch.Tensor | None,
    int4: bool,
    swiglu: bool,
    alpha: float,
    up_bias: float,
    limit: float,
    dtype: torch.dtype,
) -> torch.Tensor:
    """See :func:`ascend_kernels.grouped_matmul`."""
    rows = x.shape[0]
    experts, depth, columns = weight.shape
    width = columns // 2 if swiglu else columns
    y = x.new_empty(rows, width, dtype=dtype)
    if y.numel() == 0:
        return y
    groups = 1 if weight_scale is None else weight_scale.shape[1]
    group = 0 if groups == 1 else x.shape[1] // groups
    plan = plan_grouped(current_target(x.device), rows, experts, width, depth, group)
    sequence, first, end, _ = chunk_index_triton(offsets, rows, plan.rows)
    kind = "float" if weight_scale is None else "int4" if int4 else "int8" if x_scale is not None else "weight_int8"
    launch(
        grouped_matmul_kernel,
        (plan.programs,),
        x,
        weight,
        x_scale,
        weight_scale,
        bias,
        y,
        sequence,
        first,
        end,
        plan.tasks,
        plan.slices,
        plan.programs,
        x.stride(0),
        weight.stride(0),
        weight.stride(1),
        0 if weight_scale is None else weight_scale.stride(0),
        FORMAT=kind,
        SCALED=weight_scale is not None,
        GROUP=group,
        HAS_BIAS=bias is not None,
        SWIGLU=swiglu,
        ALPHA=alpha,
        UP_BIAS=up_bias,
        LIMIT=limit,
        DEPTH=depth,
        COLUMNS=columns,
        BM=plan.rows,
        BN=plan.columns,
        BK=plan.depth,
        STAGES=plan.stages,
        num_warps=plan.warps,
    )
    return y
