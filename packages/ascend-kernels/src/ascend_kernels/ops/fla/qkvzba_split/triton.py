"""Triton kernel: rows of one key head at a time, each of its parts to its place."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch, next_power_of_two
from ascend_kernels.ops.fla.qkvzba_split.plan import plan_qkvzba_split
from ascend_kernels.target import current_target


@triton.jit
def copy_columns(source, target, row, rows, source_stride, target_stride, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < SIZE)
    tile = tl.load(source + row * source_stride + column, mask=inside, other=0.0)
    tl.store(target + row * target_stride + column, tile, mask=inside)


@triton.jit(do_not_specialize=["tokens", "tasks", "programs"])
def qkvzba_split_kernel(
    mixed_qkvz,
    mixed_ba,
    qkv,
    z,
    b,
    a,
    tokens,
    qkvz_stride,
    ba_stride,
    tasks,
    programs,
    KEY_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    K: tl.constexpr,
    GROUP_V: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_V: tl.constexpr,
    BLOCK_GROUP: tl.constexpr,
    ROWS: tl.constexpr,
):
    width = KEY_HEADS * (2 * K + GROUP_V)
    for task in range(tl.program_id(0), tasks, programs):
        tile = task // KEY_HEADS
        head = task - tile * KEY_HEADS
        row = tile * ROWS + tl.arange(0, ROWS)[:, None]
        part = mixed_qkvz + head * (2 * K + 2 * GROUP_V)
        gates = mixed_ba + head * (2 * GROUP)
        keys = KEY_HEADS * K
        copy_columns(part, qkv + head * K, row, tokens, qkvz_stride, width, K, BLOCK_K)
        copy_columns(part + K, qkv + keys + head * K, row, tokens, qkvz_stride, width, K, BLOCK_K)
        copy_columns(part + 2 * K, qkv + 2 * keys + head * GROUP_V, row, tokens, qkvz_stride, width, GROUP_V, BLOCK_V)
        copy_columns(
            part + 2 * K + GROUP_V,
            z + head * GROUP_V,
            row,
            tokens,
            qkvz_stride,
            KEY_HEADS * GROUP_V,
            GROUP_V,
            BLOCK_V,
        )
        copy_columns(gates, b + head * GROUP, row, tokens, ba_stride, KEY_HEADS * GROUP, GROUP, BLOCK_GROUP)
        copy_columns(gates + GROUP, a + head * GROUP, row, tokens, ba_stride, KEY_HEADS * GROUP, GROUP, BLOCK_GROUP)


def qkvzba_split_triton(
    mixed_qkvz: torch.Tensor, mixed_ba: torch.Tensor, key_heads: int, value_heads: int, key_dim: int, value_dim: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.qkvzba_split`."""
    tokens = mixed_qkvz.shape[0]
    mixed_qkvz, mixed_ba = (x if x.stride(1) == 1 else x.contiguous() for x in (mixed_qkvz, mixed_ba))
    group = value_heads // key_heads
    qkv = mixed_qkvz.new_empty(tokens, 2 * key_heads * key_dim + value_heads * value_dim)
    z = mixed_qkvz.new_empty(tokens, value_heads, value_dim)
    b, a = (mixed_ba.new_empty(tokens, value_heads) for _ in range(2))
    widest = max(key_dim, group * value_dim)
    plan = plan_qkvzba_split(tokens, key_heads, widest, mixed_qkvz.element_size(), current_target(mixed_qkvz.device))
    launch(
        qkvzba_split_kernel,
        (plan.programs,),
        mixed_qkvz,
        mixed_ba,
        qkv,
        z,
        b,
        a,
        tokens,
        mixed_qkvz.stride(0),
        mixed_ba.stride(0),
        plan.tasks,
        plan.programs,
        KEY_HEADS=key_heads,
        GROUP=group,
        K=key_dim,
        GROUP_V=group * value_dim,
        BLOCK_K=next_power_of_two(key_dim),
        BLOCK_V=next_power_of_two(group * value_dim),
        BLOCK_GROUP=next_power_of_two(group),
        ROWS=plan.rows,
    )
    return qkv, z, b, a
