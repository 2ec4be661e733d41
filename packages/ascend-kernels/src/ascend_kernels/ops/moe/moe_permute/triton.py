"""Triton kernel: a token's row is read once and written to each of its experts."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.moe.moe_permute.plan import plan_rows_of_tokens
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tokens"])
def moe_permute_kernel(x, positions, y, tokens, x_row, K: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    for token in range(tl.program_id(0).to(tl.int64), tokens, tl.num_programs(0)):
        for start in range(0, COLUMNS, BLOCK):
            column = start + tl.arange(0, BLOCK)
            piece = tl.load(x + token * x_row + column, mask=column < COLUMNS, other=0.0)
            for index in range(K):
                row = tl.load(positions + token * K + index).to(tl.int64)
                if row >= 0:
                    tl.store(y + row * COLUMNS + column, piece, mask=column < COLUMNS)


def moe_permute_triton(x: torch.Tensor, positions: torch.Tensor, rows: int) -> torch.Tensor:
    """See :func:`ascend_kernels.moe_permute`."""
    tokens, columns = x.shape
    y = x.new_empty(rows, columns)
    if x.numel() == 0:
        return y
    plan = plan_rows_of_tokens(current_target(x.device), tokens, columns, 4 * x.itemsize)
    launch(
        moe_permute_kernel,
        (plan.programs,),
        x,
        positions.contiguous(),
        y,
        tokens,
        x.stride(0),
        K=positions.shape[1],
        COLUMNS=columns,
        BLOCK=plan.block,
        num_warps=plan.warps,
    )
    return y
