"""Triton kernel: a token's experts are summed up in the order in which it chose them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.moe.moe_permute.plan import plan_rows_of_tokens
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tokens"])
def moe_unpermute_kernel(
    y,
    positions,
    weights,
    x,
    tokens,
    y_row,
    HAS_WEIGHTS: tl.constexpr,
    K: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    for token in range(tl.program_id(0).to(tl.int64), tokens, tl.num_programs(0)):
        for start in range(0, COLUMNS, BLOCK):
            column = start + tl.arange(0, BLOCK)
            total = tl.zeros([BLOCK], dtype=tl.float32)
            for index in range(K):
                row = tl.load(positions + token * K + index).to(tl.int64)
                if row >= 0:
                    piece = tl.load(y + row * y_row + column, mask=column < COLUMNS, other=0.0).to(tl.float32)
                    if HAS_WEIGHTS:
                        piece *= tl.load(weights + token * K + index).to(tl.float32)
                    total += piece
            tl.store(x + token * COLUMNS + column, total.to(x.dtype.element_ty), mask=column < COLUMNS)


def moe_unpermute_triton(y: torch.Tensor, positions: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    """See :func:`ascend_kernels.moe_unpermute`."""
    tokens, columns = positions.shape[0], y.shape[1]
    x = y.new_empty(tokens, columns)
    if x.numel() == 0:
        return x
    plan = plan_rows_of_tokens(current_target(y.device), tokens, columns, 4 * y.itemsize + 16)
    launch(
        moe_unpermute_kernel,
        (plan.programs,),
        y,
        positions.contiguous(),
        None if weights is None else weights.contiguous(),
        x,
        tokens,
        y.stride(0),
        HAS_WEIGHTS=weights is not None,
        K=positions.shape[1],
        COLUMNS=columns,
        BLOCK=plan.block,
        num_warps=plan.warps,
    )
    return x
