"""Triton kernel: a chunk's outputs from the state at its start and from the tokens inside it."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.chunk_o.plan import OutputPlan, plan_chunk_o
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.ops.fla.packed import heads_together
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import product_block
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks", "programs"])
def chunk_o_kernel(
    queries,
    keys,
    deltas,
    states,
    sums,
    scores,
    ages,
    output,
    first,
    end,
    scale,
    query_stride,
    key_stride,
    tasks,
    programs,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
    SLICES: tl.constexpr,
    CHUNK: tl.constexpr,
    HAS_SCORES: tl.constexpr,
    HAS_AGES: tl.constexpr,
    DECAYS: tl.constexpr,
    STAGES: tl.constexpr,
):
    lane = tl.arange(0, CHUNK)
    row = lane[:, None]
    other = lane[None, :]
    # No branch in this loop, so that it can be pipelined; an unused entry has no tokens and reads and writes nothing.
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=STAGES):
        slice_index = task % SLICES
        head = (task // SLICES) % HEADS
        chunk = task // (SLICES * HEADS)
        begin = tl.load(first + chunk)
        length = tl.load(end + chunk) - begin
        token = begin.to(tl.int64)
        scalars = token * HEADS + head
        column = slice_index * BV + tl.arange(0, BV)[None, :]
        in_value = (row < length) & (column < V)
        state_base = states + (as_int64(chunk) * HEADS + head) * (K * V)
        result = tl.zeros([CHUNK, BV], dtype=tl.float32)
        if not HAS_SCORES:
            attention = tl.zeros([CHUNK, CHUNK], dtype=tl.float32)
        for start in tl.static_range(0, K, BK):
            channel = start + tl.arange(0, BK)
            query = tl.load(
                queries + token * query_stride + (head // GROUP) * K + row * query_stride + channel[None, :],
                mask=(row < length) & (channel[None, :] < K),
                other=0.0,
            )
            state = tl.load(
                state_base + channel[:, None] * V + column,
                mask=(channel[:, None] < K) & (column < V) & (length > 0),
                other=0.0,
            )
            result += tl.dot(query, state.to(query.dtype), input_precision="ieee")
            if not HAS_SCORES:
                key = tl.load(
                    keys + token * key_stride + (head // GROUP) * K + lane[None, :] * key_stride + channel[:, None],
                    mask=(lane[None, :] < length) & (channel[:, None] < K),
                    other=0.0,
                )
                attention += tl.dot(query, key, input_precision="ieee")
        if HAS_AGES:
            result *= tl.load(ages + scalars + lane * HEADS, mask=lane < length, other=0.0)[:, None]
        if HAS_SCORES:
            attention = tl.load(
                scores + scalars * CHUNK + row * (HEADS * CHUNK) + other,
                mask=(row < length) & (row >= other),
                other=0.0,
            )
        else:
            if DECAYS:
                logarithm = tl.load(sums + scalars + lane * HEADS, mask=lane < length, other=0.0)
                result *= tl.exp(logarithm)[:, None]
                attention *= tl.exp(tl.minimum(logarithm[:, None] - logarithm[None, :], 0.0))
            attention = tl.where(row >= other, attention, 0.0) * scale
            result *= scale
        delta = tl.load(deltas + scalars * V + row * (HEADS * V) + column, mask=in_value, other=0.0)
        result += tl.dot(attention.to(delta.dtype), delta, input_precision="ieee")
        tl.store(output + scalars * V + row * (HEADS * V) + column, result.to(output.dtype.element_ty), mask=in_value)


def launch_chunk_o(
    q: torch.Tensor,
    k: torch.Tensor | None,
    deltas: torch.Tensor,
    states: torch.Tensor,
    sums: torch.Tensor | None,
    first: torch.Tensor,
    end: torch.Tensor,
    scale: float,
    chunk: int,
    *,
    output: torch.Tensor,
    scores: torch.Tensor | None = None,
    ages: torch.Tensor | None = None,
    plan: OutputPlan | None = None,
) -> None:
    """Write outputs of chunks of ``chunk`` tokens.

    With ``scores`` everything about a chunk's own tokens is given, scale included, and what the state gives is
    multiplied by ``ages``; ``k``, ``sums`` and ``scale`` are not looked at.
    """
    _, heads, value_dim = deltas.shape
    key_dim = q.shape[2]
    if plan is None:
        plan = plan_chunk_o(key_dim, value_dim, current_target(q.device))
    block_v = product_block(value_dim, plan.block_v)
    slices = -(-value_dim // block_v)
    tasks = first.shape[0] * heads * slices
    programs = min(tasks, plan.programs)
    key = q if k is None else k
    launch(
        chunk_o_kernel,
        (programs,),
        q,
        key,
        deltas,
        states,
        deltas if sums is None else sums,
        deltas if scores is None else scores,
        deltas if ages is None else ages,
        output,
        first,
        end,
        scale,
        q.stride(0),
        key.stride(0),
        tasks,
        programs,
        HEADS=heads,
        GROUP=heads // q.shape[1],
        K=key_dim,
        V=value_dim,
        BK=product_block(key_dim, plan.block_k),
        BV=block_v,
        SLICES=slices,
        CHUNK=chunk,
        HAS_SCORES=scores is not None,
        HAS_AGES=ages is not None,
        DECAYS=sums is not None,
        STAGES=plan.stages,
        num_warps=plan.warps,
        multibuffer=False,
    )


def chunk_o_triton(
    q: torch.Tensor,
    k: torch.Tensor,
    deltas: torch.Tensor,
    states: torch.Tensor,
    g_cumsum: torch.Tensor | None,
    first: torch.Tensor,
    end: torch.Tensor,
    scale: float,
    chunk: int,
) -> torch.Tensor:
    """See :func:`ascend_kernels.chunk_o`."""
    q, k = heads_together(q), heads_together(k)
    sums = None if g_cumsum is None else g_cumsum.contiguous()
    deltas = deltas.contiguous()
    output = torch.empty_like(deltas)
    launch_chunk_o(q, k, deltas, states.contiguous(), sums, first, end, scale, chunk, output=output)
    return output
