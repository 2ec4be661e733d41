"""Triton kernel: mean squares of two parts of each row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.norm.qk_square_means.plan import plan_squares
from ascend_kernels.target import current_target


@triton.jit
def sum_of_squares(row, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, COLUMNS, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(row + column, mask=column < COLUMNS, other=0.0).to(tl.float32)
        squares += value * value
    return tl.sum(squares, axis=0)


@triton.jit(do_not_specialize=["tokens"])
def qk_square_means_kernel(
    qkv,
    means,
    tokens,
    qkv_row,
    ranks,
    Q_COLUMNS: tl.constexpr,
    K_COLUMNS: tl.constexpr,
    Q_BLOCK: tl.constexpr,
    K_BLOCK: tl.constexpr,
):
    for token in range(tl.program_id(0).to(tl.int64), tokens, tl.num_programs(0)):
        row = qkv + token * qkv_row
        tl.store(means + token * 2, sum_of_squares(row, Q_COLUMNS, Q_BLOCK) / (Q_COLUMNS * ranks))
        tl.store(means + token * 2 + 1, sum_of_squares(row + Q_COLUMNS, K_COLUMNS, K_BLOCK) / (K_COLUMNS * ranks))


def qk_square_means_triton(qkv: torch.Tensor, q_columns: int, k_columns: int, ranks: int) -> torch.Tensor:
    """See :func:`ascend_kernels.qk_square_means`."""
    tokens = qkv.shape[0]
    means = qkv.new_empty(tokens, 2, dtype=torch.float32)
    plan = plan_squares(current_target(qkv.device), tokens, q_columns, k_columns, qkv.itemsize)
    launch(
        qk_square_means_kernel,
        (plan.programs,),
        qkv,
        means,
        tokens,
        qkv.stride(0),
        float(ranks),
        Q_COLUMNS=q_columns,
        K_COLUMNS=k_columns,
        Q_BLOCK=plan.q_block,
        K_BLOCK=plan.k_block,
    )
    return means
