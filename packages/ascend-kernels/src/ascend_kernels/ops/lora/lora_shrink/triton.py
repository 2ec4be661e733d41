"""Triton kernels: a vector times some rows of the matrix of its token's adapter."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.ops.lora.lora_shrink.plan import plan_lora
from ascend_kernels.target import current_target


@triton.jit
def matrix_times_vector(
    matrix, vector, row, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr
):
    """fp32 ``[BR]``: the rows ``row`` of a contiguous matrix times a vector."""
    sums = tl.zeros([BR, BC], dtype=tl.float32)
    for start in range(0, COLUMNS, BC):
        column = start + tl.arange(0, BC)
        inside = column < COLUMNS
        part = tl.load(vector + column, mask=inside, other=0.0).to(tl.float32)
        tile = tl.load(
            matrix + row[:, None] * COLUMNS + column[None, :], mask=(row[:, None] < ROWS) & inside[None, :], other=0.0
        )
        sums += tile.to(tl.float32) * part[None, :]
    return tl.sum(sums, axis=1)


@triton.jit(do_not_specialize=["tasks"])
def lora_shrink_kernel(
    x,
    a,
    adapters,
    y,
    scale,
    tasks,
    x_row,
    RANK: tl.constexpr,
    COLUMNS: tl.constexpr,
    SLICES: tl.constexpr,
    BR: tl.constexpr,
    BC: tl.constexpr,
):
    for task in range(tl.program_id(0), tasks, tl.num_programs(0)):
        token = as_int64(task // SLICES)
        row = (task % SLICES) * BR + tl.arange(0, BR)
        adapter = tl.load(adapters + token).to(tl.int64)
        if adapter >= 0:
            result = matrix_times_vector(a + adapter * (RANK * COLUMNS), x + token * x_row, row, RANK, COLUMNS, BR, BC)
            tl.store(y + token * RANK + row, result * scale, mask=row < RANK)
        else:
            tl.store(y + token * RANK + row, tl.zeros([BR], dtype=tl.float32), mask=row < RANK)


def lora_shrink_triton(x: torch.Tensor, a: torch.Tensor, adapters: torch.Tensor, scale: float) -> torch.Tensor:
    """See :func:`ascend_kernels.lora_shrink`."""
    tokens, columns = x.shape
    rank = a.shape[1]
    y = x.new_empty(tokens, rank, dtype=torch.float32)
    if a.numel() == 0:
        return y.zero_()
    plan = plan_lora(current_target(x.device), tokens, rank, columns)
    launch(
        lora_shrink_kernel,
        (plan.programs,),
        x,
        a,
        adapters,
        y,
        scale,
        plan.tasks,
        x.stride(0),
        RANK=rank,
        COLUMNS=columns,
        SLICES=plan.slices,
        BR=plan.rows,
        BC=plan.columns,
    )
    return y
