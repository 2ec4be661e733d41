"""Triton kernel: w and u of the WY representation, from inverses computed before."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.packed import heads_together
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import product_block
from ascend_kernels.ops.fla.wy_fast.plan import WyPlan, plan_wy_fast
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks", "programs"])
def wy_fast_kernel(
    keys,
    values,
    beta,
    decay,
    inverses,
    w,
    u,
    first,
    end,
    key_stride,
    value_stride,
    tasks,
    programs,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    CHUNK: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
):
    lane = tl.arange(0, CHUNK)
    row = lane[:, None]
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        chunk = task // HEADS
        head = task - chunk * HEADS
        begin = tl.load(first + chunk)
        length = tl.load(end + chunk) - begin
        if length > 0:
            token = begin.to(tl.int64)
            scalars = token * HEADS + head
            key_base = keys + (head // GROUP) * K
            weight = tl.load(beta + scalars + lane * HEADS, mask=lane < length, other=0.0).to(tl.float32)
            logarithm = tl.load(decay + scalars + lane * HEADS, mask=lane < length, other=0.0).to(tl.float32)
            inverse = tl.load(
                inverses + scalars * CHUNK + row * (HEADS * CHUNK) + lane[None, :], mask=row < length, other=0.0
            ).to(tl.float32)
            for_keys = (inverse * (weight * tl.exp(logarithm))[None, :]).to(w.dtype.element_ty)
            for start in tl.static_range(0, K, BK):
                column = start + tl.arange(0, BK)[None, :]
                inside = (row < length) & (column < K)
                tile = tl.load(key_base + token * key_stride + row * key_stride + column, mask=inside, other=0.0)
                product = tl.dot(for_keys, tile, input_precision="ieee")
                tl.store(w + scalars * K + row * (HEADS * K) + column, product.to(w.dtype.element_ty), mask=inside)
            for_values = (inverse * weight[None, :]).to(u.dtype.element_ty)
            for start in tl.static_range(0, V, BV):
                column = start + tl.arange(0, BV)[None, :]
                inside = (row < length) & (column < V)
                tile = tl.load(
                    values + head * V + token * value_stride + row * value_stride + column, mask=inside, other=0.0
                )
                product = tl.dot(for_values, tile, input_precision="ieee")
                tl.store(u + scalars * V + row * (HEADS * V) + column, product.to(u.dtype.element_ty), mask=inside)


def wy_fast_triton(
    k: torch.Tensor,
    v: torch.Tensor,
    beta: torch.Tensor,
    g_cumsum: torch.Tensor,
    inverse: torch.Tensor,
    first: torch.Tensor,
    end: torch.Tensor,
    plan: WyPlan | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.wy_fast`."""
    k, v = heads_together(k), heads_together(v)
    tokens, heads, chunk = inverse.shape
    key_dim, value_dim = k.shape[2], v.shape[2]
    tasks = first.shape[0] * heads
    if plan is None:
        plan = plan_wy_fast(tasks, key_dim, value_dim, current_target(k.device))
    w = k.new_empty(tokens, heads, key_dim)
    u = v.new_empty(tokens, heads, value_dim)
    launch(
        wy_fast_kernel,
        (plan.programs,),
        k,
        v,
        beta.contiguous(),
        g_cumsum.contiguous(),
        inverse.contiguous(),
        w,
        u,
        first,
        end,
        k.stride(0),
        v.stride(0),
        tasks,
        plan.programs,
        HEADS=heads,
        GROUP=heads // k.shape[1],
        K=key_dim,
        V=value_dim,
        CHUNK=chunk,
        BK=product_block(key_dim, plan.block_k),
        BV=product_block(value_dim, plan.block_v),
        num_warps=plan.warps,
    )
    return w, u
