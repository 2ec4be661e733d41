"""Triton kernel: a tile of the product at a time, its sums always in the same order."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.batch_invariant.invariant_matmul.plan import plan_invariant
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["rows", "tasks", "high", "programs"])
def invariant_matmul_kernel(
    x,
    y,
    bias,
    z,
    rows,
    tasks,
    high,
    programs,
    x_batch,
    x_row,
    x_depth,
    y_batch,
    y_depth,
    y_column,
    HAS_BIAS: tl.constexpr,
    DEPTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDE: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
):
    # Tiles that share columns follow one another.
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        batch = as_int64(task // (high * WIDE))
        tile = task % (high * WIDE)
        begin = (tile % high) * BM
        row = tl.arange(0, BM)[:, None]
        column = (tile // high) * BN + tl.arange(0, BN)[None, :]
        lane = tl.arange(0, BK)
        upper = x + batch * x_batch + as_int64(begin) * x_row
        lower = y + batch * y_batch
        sums = tl.zeros([BM, BN], dtype=tl.float32)
        for start in tl.range(0, DEPTH, BK, num_stages=STAGES):
            depth = start + lane
            left = tl.load(
                upper + row * x_row + depth[None, :] * x_depth,
                mask=(begin + row < rows) & (depth[None, :] < DEPTH),
                other=0.0,
            )
            right = tl.load(
                lower + depth[:, None] * y_depth + column * y_column,
                mask=(depth[:, None] < DEPTH) & (column < COLUMNS),
                other=0.0,
            )
            sums += tl.dot(left, right, input_precision="ieee")
        if HAS_BIAS:
            sums += tl.load(bias + column, mask=column < COLUMNS, other=0.0).to(tl.float32)
        tl.store(
            z + (batch * rows + begin) * COLUMNS + row * COLUMNS + column,
            sums.to(z.dtype.element_ty),
            mask=(begin + row < rows) & (column < COLUMNS),
        )


def invariant_matmul_triton(x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """See :func:`ascend_kernels.invariant_matmul`."""
    batches, rows, depth = x.shape
    columns = y.shape[2]
    z = x.new_empty(batches, rows, columns)
    if z.numel() == 0:
        return z
    plan = plan_invariant(current_target(x.device), batches, rows, columns, x.itemsize)
    launch(
        invariant_matmul_kernel,
        (plan.programs,),
        x,
        y,
        bias,
        z,
        rows,
        plan.tasks,
        plan.high,
        plan.programs,
        *x.stride(),
        *y.stride(),
        HAS_BIAS=bias is not None,
        DEPTH=depth,
        COLUMNS=columns,
        WIDE=plan.wide,
        BM=plan.rows,
        BN=plan.columns,
        BK=plan.depth,
        STAGES=plan.stages,
        num_warps=plan.warps,
    )
    return z
