"""Triton kernel: tiles of rows and columns."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.activation.elementwise.plan import plan_tiles
from ascend_kernels.ops.activation.elementwise.triton import as_rows
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["rows"])
def muls_add_kernel(
    x,
    y,
    result,
    rows,
    x_stride,
    y_stride,
    scale,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    COLUMN_TILES: tl.constexpr = (COLUMNS + BLOCK - 1) // BLOCK
    for tile in range(tl.program_id(0), tl.cdiv(rows, ROWS) * COLUMN_TILES, tl.num_programs(0)):
        row = (tile // COLUMN_TILES) * ROWS + tl.arange(0, ROWS)[:, None]
        column = (tile % COLUMN_TILES) * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < COLUMNS)
        left = tl.load(x + row.to(tl.int64) * x_stride + column, mask=inside, other=0.0).to(tl.float32)
        right = tl.load(y + row.to(tl.int64) * y_stride + column, mask=inside, other=0.0).to(tl.float32)
        value = (left * scale + right).to(result.dtype.element_ty)
        tl.store(result + row.to(tl.int64) * COLUMNS + column, value, mask=inside)


def muls_add_triton(x: torch.Tensor, y: torch.Tensor, scale: float) -> torch.Tensor:
    """See :func:`ascend_kernels.muls_add`."""
    result = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return result
    left, right = (as_rows(tensor if tensor.dim() else tensor[None]) for tensor in (x, y))
    rows, columns = left.shape
    plan = plan_tiles(current_target(x.device), rows, columns, 3 * x.itemsize, 12)
    launch(
        muls_add_kernel,
        (plan.programs,),
        left,
        right,
        result,
        rows,
        left.stride(0),
        right.stride(0),
        float(scale),
        COLUMNS=columns,
        ROWS=plan.rows,
        BLOCK=plan.block,
        num_warps=plan.warps,
    )
    return result
