"""Triton kernel: normalise rows, with what models put before and after it fused in."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.norm.row_norm.plan import plan_rows
from ascend_kernels.target import current_target


@triton.jit
def gate_of(gate, SIGMOID: tl.constexpr):
    if SIGMOID:
        return tl.sigmoid(gate)
    return gate * tl.sigmoid(gate)


# Counts that must not compile a kernel of their own when they happen to be 1. Strides are specialised: loads are wide
# only where the compiler knows that addresses are multiples of 16.
@triton.jit(do_not_specialize=["outer", "inner"])
def row_norm_kernel(
    x,
    residual,
    gate,
    weight,
    bias,
    y,
    total,
    outer,
    inner,
    x_outer,
    x_inner,
    residual_outer,
    residual_inner,
    gate_outer,
    gate_inner,
    y_outer,
    y_inner,
    weight_outer,
    eps,
    HAS_RESIDUAL: tl.constexpr,
    HAS_GATE: tl.constexpr,
    GATE_FIRST: tl.constexpr,
    SIGMOID: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    PER_GROUP: tl.constexpr,
    WEIGHT_OFFSET: tl.constexpr,
    CENTRED: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    ONE_PASS: tl.constexpr,
    HOIST: tl.constexpr,
):
    lane = tl.arange(0, BLOCK)[None, :]
    tiles_per_group = tl.cdiv(inner, ROWS)
    first = tl.program_id(0)
    step = tl.num_programs(0)
    end = outer * tiles_per_group
    if PER_GROUP:
        # The program stays within one group, whose weight it reads once.
        own = first % outer
        step = step // outer
        first = own * tiles_per_group + first // outer
        end = own * tiles_per_group + tiles_per_group
        weight += own * weight_outer
        if HAS_BIAS:
            bias += own * weight_outer
    if (HAS_WEIGHT and ONE_PASS) and HOIST:
        factor = tl.load(weight + lane, mask=lane < COLUMNS, other=0.0)
    if (HAS_BIAS and ONE_PASS) and HOIST:
        shift = tl.load(bias + lane, mask=lane < COLUMNS, other=0.0)
    for tile in range(first, end, step):
        group = tile // tiles_per_group
        row = (tile - group * tiles_per_group) * ROWS + tl.arange(0, ROWS)[:, None]
        # Offsets of rows may pass 2**31 elements; those within a row do not.
        x_row = x + group.to(tl.int64) * x_outer + row.to(tl.int64) * x_inner
        y_row = y + group.to(tl.int64) * y_outer + row.to(tl.int64) * y_inner
        if HAS_RESIDUAL:
            residual_row = residual + group.to(tl.int64) * residual_outer + row.to(tl.int64) * residual_inner
            total_row = total + (group.to(tl.int64) * inner + row) * COLUMNS
        if HAS_GATE:
            gate_row = gate + group.to(tl.int64) * gate_outer + row.to(tl.int64) * gate_inner
        if ONE_PASS:
            inside = (row < inner) & (lane < COLUMNS)
            value = tl.load(x_row + lane, mask=inside, other=0.0).to(tl.float32)
            if HAS_RESIDUAL:
                value += tl.load(residual_row + lane, mask=inside, other=0.0).to(tl.float32)
                tl.store(total_row + lane, value.to(total.dtype.element_ty), mask=inside)
            if HAS_GATE:
                gated = gate_of(tl.load(gate_row + lane, mask=inside, other=0.0).to(tl.float32), SIGMOID)
                if GATE_FIRST:
                    value *= gated
            if CENTRED:
                mean = tl.sum(value, axis=1) / COLUMNS
                value = tl.where(inside, value - mean[:, None], 0.0)
            scale = tl.rsqrt(tl.sum(value * value, axis=1) / COLUMNS + eps)
            value *= scale[:, None]
            if HAS_WEIGHT:
                if not HOIST:
                    factor = tl.load(weight + lane, mask=lane < COLUMNS, other=0.0)
                value *= factor.to(tl.float32) + WEIGHT_OFFSET
            if HAS_BIAS:
                if not HOIST:
                    shift = tl.load(bias + lane, mask=lane < COLUMNS, other=0.0)
                value += shift.to(tl.float32)
            if HAS_GATE and not GATE_FIRST:
                value *= gated
            tl.store(y_row + lane, value.to(y.dtype.element_ty), mask=inside)
        else:
            sums = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
            squares = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
            for start in range(0, COLUMNS, BLOCK):
                column = start + lane
                inside = (row < inner) & (column < COLUMNS)
                value = tl.load(x_row + column, mask=inside, other=0.0).to(tl.float32)
                if HAS_RESIDUAL:
                    value += tl.load(residual_row + column, mask=inside, other=0.0).to(tl.float32)
                if HAS_GATE and GATE_FIRST:
                    value *= gate_of(tl.load(gate_row + column, mask=inside, other=0.0).to(tl.float32), SIGMOID)
                if CENTRED:
                    sums += value
                squares += value * value
            mean = tl.sum(sums, axis=1) / COLUMNS
            # Of values that are not read a third time; in fp32, and centred rows have small means in practice.
            variance = tl.sum(squares, axis=1) / COLUMNS - mean * mean
            scale = tl.rsqrt(tl.maximum(variance, 0.0) + eps)
            for start in range(0, COLUMNS, BLOCK):
                column = start + lane
                inside = (row < inner) & (column < COLUMNS)
                value = tl.load(x_row + column, mask=inside, other=0.0).to(tl.float32)
                if HAS_RESIDUAL:
                    value += tl.load(residual_row + column, mask=inside, other=0.0).to(tl.float32)
                    tl.store(total_row + column, value.to(total.dtype.element_ty), mask=inside)
                if HAS_GATE:
                    gated = gate_of(tl.load(gate_row + column, mask=inside, other=0.0).to(tl.float32), SIGMOID)
                    if GATE_FIRST:
                        value *= gated
                if CENTRED:
                    value -= mean[:, None]
                value *= scale[:, None]
                if HAS_WEIGHT:
                    factor = tl.load(weight + column, mask=column < COLUMNS, other=0.0)
                    value *= factor.to(tl.float32) + WEIGHT_OFFSET
                if HAS_BIAS:
                    value += tl.load(bias + column, mask=column < COLUMNS, other=0.0).to(tl.float32)
                if HAS_GATE and not GATE_FIRST:
                    value *= gated
                tl.store(y_row + column, value.to(y.dtype.element_ty), mask=inside)


def as_groups(x: torch.Tensor) -> torch.Tensor:
    """``x[..., columns]`` as ``[outer, inner, columns]`` without a copy if its strides allow.

    All leading dimensions become one wherever they can; a tensor of heads cut out of wider rows keeps two.
    """
    if x.shape[-1] != 1 and x.stride(-1) != 1:
        x = x.contiguous()
    if x.dim() == 1:
        return x[None, None]
    if x.dim() == 2:
        return x[None]
    if x.dim() == 3 and (x.stride(0) != x.shape[1] * x.stride(1)) and x.shape[0] != 1:
        return x
    return x.reshape(1, -1, x.shape[-1])


def normalise_groups(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    eps: float,
    y: torch.Tensor,
    *,
    residual: torch.Tensor | None = None,
    total: torch.Tensor | None = None,
    gate: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    gate_first: bool = False,
    sigmoid: bool = False,
    centred: bool = False,
    weight_offset: float = 0.0,
) -> None:
    """Normalise ``x[outer, inner, columns]`` into ``y`` of the same shape.

    ``weight`` and ``bias`` are ``[columns]``, or ``[outer, columns]`` for one per group; ``total`` is contiguous.
    """
    outer, inner, columns = x.shape
    tensors = 2 + 2 * (residual is not None) + (gate is not None)
    values = 2 + (x.itemsize < 4) + (gate is not None) + centred
    per_group = weight is not None and weight.dim() == 2
    plan = plan_rows(current_target(x.device), outer, inner, columns, x.itemsize * tensors, 4 * values, per_group)

    def strides(tensor: torch.Tensor | None) -> tuple[int, int]:
        return (0, 0) if tensor is None else (tensor.stride(0), tensor.stride(1))

    launch(
        row_norm_kernel,
        (plan.programs,),
        x,
        residual,
        gate,
        weight,
        bias,
        y,
        total,
        outer,
        inner,
        *strides(x),
        *strides(residual),
        *strides(gate),
        *strides(y),
        weight.stride(0) if per_group else 0,
        eps,
        HAS_RESIDUAL=residual is not None,
        HAS_GATE=gate is not None,
        GATE_FIRST=gate_first,
        SIGMOID=sigmoid,
        HAS_WEIGHT=weight is not None,
        HAS_BIAS=bias is not None,
        PER_GROUP=per_group,
        WEIGHT_OFFSET=weight_offset,
        CENTRED=centred,
        COLUMNS=columns,
        ROWS=plan.rows,
        BLOCK=plan.block,
        ONE_PASS=plan.one_pass,
        HOIST=plan.hoist,
        num_warps=plan.warps,
        multibuffer=plan.multibuffer,
    )
