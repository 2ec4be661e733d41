"""Triton kernel: one row at a time, its sums always in the same order."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.batch_invariant.invariant_rows.plan import plan_invariant_rows
from ascend_kernels.ops.sampling.rows.triton import LOWEST, add_exponentials, join_exponentials
from ascend_kernels.target import current_target


@triton.jit
def load_piece(row, start, lane, COLUMNS: tl.constexpr, OTHER: tl.constexpr):
    return tl.load(row + start + lane, mask=start + lane < COLUMNS, other=OTHER).to(tl.float32)


# Sums are kept lane by lane and added up at the end: their order follows from COLUMNS and BLOCK.
@triton.jit(do_not_specialize=["rows"])
def invariant_rows_kernel(
    x,
    weight,
    y,
    rows,
    x_row,
    eps,
    KIND: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    lane = tl.arange(0, BLOCK)
    for index in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        row = x + index * x_row
        sums = tl.zeros([BLOCK], dtype=tl.float32)
        if KIND == "mean":
            for start in range(0, COLUMNS, BLOCK):
                sums += load_piece(row, start, lane, COLUMNS, 0.0)
            tl.store(y + index, (tl.sum(sums, axis=0) / COLUMNS).to(y.dtype.element_ty))
        elif KIND == "rms_norm":
            for start in range(0, COLUMNS, BLOCK):
                value = load_piece(row, start, lane, COLUMNS, 0.0)
                sums += value * value
            scale = tl.rsqrt(tl.sum(sums, axis=0) / COLUMNS + eps)
            for start in range(0, COLUMNS, BLOCK):
                value = load_piece(row, start, lane, COLUMNS, 0.0) * scale
                if HAS_WEIGHT:
                    value *= load_piece(weight, start, lane, COLUMNS, 0.0)
                tl.store(y + index * COLUMNS + start + lane, value.to(y.dtype.element_ty), mask=start + lane < COLUMNS)
        else:
            largest = tl.zeros([BLOCK], dtype=tl.float32) + LOWEST
            for start in range(0, COLUMNS, BLOCK):
                value = load_piece(row, start, lane, COLUMNS, float("-inf"))
                largest, sums = add_exponentials(largest, sums, value)
            most, total = join_exponentials(largest, sums)
            blocks: tl.constexpr = (COLUMNS + BLOCK - 1) // BLOCK
            for block in range(blocks):  # from the end, which is still in the cache
                start = (blocks - 1 - block) * BLOCK
                value = load_piece(row, start, lane, COLUMNS, 0.0) - most
                value = tl.exp(value) / total if KIND == "softmax" else value - tl.log(total)
                tl.store(y + index * COLUMNS + start + lane, value.to(y.dtype.element_ty), mask=start + lane < COLUMNS)


def invariant_rows_triton(x: torch.Tensor, weight: torch.Tensor | None, kind: str, eps: float) -> torch.Tensor:
    """See :mod:`ascend_kernels.ops.batch_invariant.invariant_rows`."""
    rows, columns = x.shape
    y = x.new_empty(rows) if kind == "mean" else x.new_empty(rows, columns)
    if x.numel() == 0:
        return y
    if x.stride(1) != 1:
        x = x.contiguous()
    plan = plan_invariant_rows(current_target(x.device), rows, columns, x.itemsize)
    launch(
        invariant_rows_kernel,
        (plan.programs,),
        x,
        weight,
        y,
        rows,
        x.stride(0),
        eps,
        KIND=kind,
        HAS_WEIGHT=weight is not None,
        COLUMNS=columns,
        BLOCK=plan.block,
        num_warps=plan.warps,
    )
    return y
