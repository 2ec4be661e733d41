"""Triton kernel: the strictly lower triangular matrix of decayed, scaled products of a chunk's keys."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.packed import heads_together
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import KktPlan, plan_scaled_dot_kkt, product_block
from ascend_kernels.target import current_target


@triton.jit
def key_products(
    keys,
    token_stride,
    begin,
    length,
    K: tl.constexpr,
    CHUNK: tl.constexpr,
    BK: tl.constexpr,
):
    """k k^T [CHUNK, CHUNK] of the keys at ``keys``, rows from ``begin``."""
    row = tl.arange(0, CHUNK)[:, None]
    products = tl.zeros([CHUNK, CHUNK], dtype=tl.float32)
    for start in tl.static_range(0, K, BK):
        column = start + tl.arange(0, BK)[None, :]
        tile = tl.load(
            keys + begin.to(tl.int64) * token_stride + row * token_stride + column,
            mask=(row < length) & (column < K),
            other=0.0,
        )
        products += tl.dot(tile, tl.trans(tile), input_precision="ieee")
    return products


@triton.jit
def decay_below(sums, CHUNK: tl.constexpr):
    """exp(sums_i - sums_j) where i > j, else 0; behind a sequence's end, where sums read as 0, at most 1."""
    row = tl.arange(0, CHUNK)[:, None]
    column = tl.arange(0, CHUNK)[None, :]
    return tl.where(row > column, tl.exp(tl.minimum(sums[:, None] - sums[None, :], 0.0)), 0.0)


@triton.jit(do_not_specialize=["tasks", "programs"])
def scaled_dot_kkt_kernel(
    keys,
    beta,
    sums,
    result,
    first,
    end,
    token_stride,
    tasks,
    programs,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    K: tl.constexpr,
    CHUNK: tl.constexpr,
    BK: tl.constexpr,
    DECAYS: tl.constexpr,
):
    lane = tl.arange(0, CHUNK)
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        chunk = task // HEADS
        head = task - chunk * HEADS
        begin = tl.load(first + chunk)
        length = tl.load(end + chunk) - begin
        if length > 0:
            scalars = begin.to(tl.int64) * HEADS + head
            products = key_products(keys + (head // GROUP) * K, token_stride, begin, length, K, CHUNK, BK)
            weight = tl.load(beta + scalars + lane * HEADS, mask=lane < length, other=0.0).to(tl.float32)
            products *= weight[:, None]
            if DECAYS:
                decay = tl.load(sums + scalars + lane * HEADS, mask=lane < length, other=0.0)
                products *= decay_below(decay, CHUNK)
            products = tl.where(lane[:, None] > lane[None, :], products, 0.0)
            tl.store(
                result + scalars * CHUNK + lane[:, None] * (HEADS * CHUNK) + lane[None, :],
                products,
                mask=lane[:, None] < length,
            )


def scaled_dot_kkt_triton(
    k: torch.Tensor,
    beta: torch.Tensor,
    g_cumsum: torch.Tensor | None,
    first: torch.Tensor,
    end: torch.Tensor,
    chunk: int,
    plan: KktPlan | None = None,
) -> torch.Tensor:
    """See :func:`ascend_kernels.scaled_dot_kkt`."""
    k = heads_together(k)
    tokens, heads = beta.shape
    dim = k.shape[2]
    result = k.new_empty(tokens, heads, chunk, dtype=torch.float32)
    if plan is None:
        plan = plan_scaled_dot_kkt(first.shape[0] * heads, dim, current_target(k.device))
    beta = beta.contiguous()
    launch(
        scaled_dot_kkt_kernel,
        (plan.programs,),
        k,
        beta,
        beta if g_cumsum is None else g_cumsum.contiguous(),
        result,
        first,
        end,
        k.stride(0),
        first.shape[0] * heads,
        plan.programs,
        HEADS=heads,
        GROUP=heads // k.shape[1],
        K=dim,
        CHUNK=chunk,
        BK=product_block(dim, plan.block_k),
        DECAYS=g_cumsum is not None,
        num_warps=plan.warps,
    )
    return result
