"""The chunked form of the gated delta rule: what depends on no state in one kernel, then the walk, then the outputs."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.chunk_delta_h.triton import Decay, head_decay, launch_chunk_delta_h, new_walk
from ascend_kernels.ops.fla.chunk_index.triton import chunk_index_triton
from ascend_kernels.ops.fla.chunk_local_cumsum.triton import chunk_local_cumsum_triton
from ascend_kernels.ops.fla.chunk_o.triton import launch_chunk_o
from ascend_kernels.ops.fla.gated_delta_rule.plan import CHUNK, GdnIntraPlan, plan_gdn_intra
from ascend_kernels.ops.fla.l2norm.triton import l2norm_triton
from ascend_kernels.ops.fla.packed import heads_together
from ascend_kernels.ops.fla.scaled_dot_kkt.triton import scaled_dot_kkt_triton
from ascend_kernels.ops.fla.solve_tril.triton import solve_tril_triton, unit_lower_inverse
from ascend_kernels.ops.fla.wy_fast.triton import wy_fast_triton
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks", "programs"])
def gdn_intra_kernel(
    queries,
    keys,
    decay,
    beta,
    inverses,
    scores,
    sums,
    read_fades,
    write_fades,
    ages,
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
    BK: tl.constexpr,
    CHUNK: tl.constexpr,
    LEVELS: tl.constexpr,
    NORMALISE: tl.constexpr,
    EPS: tl.constexpr,
    SOLVE_PRECISION: tl.constexpr,
):
    lane = tl.arange(0, CHUNK)
    row = lane[:, None]
    other = lane[None, :]
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        chunk = task // HEADS
        head = task - chunk * HEADS
        begin = tl.load(first + chunk)
        length = tl.load(end + chunk) - begin
        if length > 0:
            token = begin.to(tl.int64)
            scalars = token * HEADS + head
            inside = lane < length
            strength = tl.load(beta + scalars + lane * HEADS, mask=inside, other=0.0).to(tl.float32)
            logarithm = tl.load(decay + scalars + lane * HEADS, mask=inside, other=0.0).to(tl.float32)
            total = tl.sum(logarithm, axis=0)
            logarithm = tl.cumsum(logarithm, axis=0)
            key_products = tl.zeros([CHUNK, CHUNK], dtype=tl.float32)
            query_products = tl.zeros([CHUNK, CHUNK], dtype=tl.float32)
            key_squares = tl.zeros([CHUNK], dtype=tl.float32)
            query_squares = tl.zeros([CHUNK], dtype=tl.float32)
            for start in tl.static_range(0, K, BK):
                channel = start + tl.arange(0, BK)[None, :]
                in_tile = (row < length) & (channel < K)
                key = tl.load(
                    keys + token * key_stride + (head // GROUP) * K + row * key_stride + channel,
                    mask=in_tile,
                    other=0.0,
                )
                query = tl.load(
                    queries + token * query_stride + (head // GROUP) * K + row * query_stride + channel,
                    mask=in_tile,
                    other=0.0,
                )
                key_products += tl.dot(key, tl.trans(key), input_precision="ieee")
                query_products += tl.dot(query, tl.trans(key), input_precision="ieee")
                if NORMALISE:
                    wide = key.to(tl.float32)
                    key_squares += tl.sum(wide * wide, axis=1)
                    wide = query.to(tl.float32)
                    query_squares += tl.sum(wide * wide, axis=1)
            key_norm = tl.zeros([CHUNK], dtype=tl.float32) + 1.0
            query_norm = tl.zeros([CHUNK], dtype=tl.float32) + scale
            if NORMALISE:
                key_norm = 1.0 / tl.sqrt(key_squares + EPS)
                query_norm = scale / tl.sqrt(query_squares + EPS)
            # Where i >= j the exponent is never positive, whatever the decay.
            fade = tl.exp(tl.where(row >= other, logarithm[:, None] - logarithm[None, :], 0.0)) * key_norm[None, :]
            tl.store(
                scores + scalars * CHUNK + row * (HEADS * CHUNK) + other,
                tl.where(row >= other, query_products * fade * query_norm[:, None], 0.0).to(scores.dtype.element_ty),
                mask=row < length,
            )
            tl.store(ages + scalars + lane * HEADS, tl.exp(logarithm) * query_norm, mask=inside)
            tl.store(read_fades + scalars + lane * HEADS, tl.exp(logarithm) * key_norm, mask=inside)
            tl.store(write_fades + scalars + lane * HEADS, tl.exp(total - logarithm) * key_norm, mask=inside)
            tl.store(sums + scalars + lane * HEADS, logarithm, mask=inside)
            strict = tl.where(row > other, key_products * fade * (strength * key_norm)[:, None], 0.0)
            inverse = unit_lower_inverse(strict, CHUNK, LEVELS, SOLVE_PRECISION) * strength[None, :]
            tl.store(
                inverses + scalars * CHUNK + row * (HEADS * CHUNK) + other,
                inverse.to(inverses.dtype.element_ty),
                mask=row < length,
            )


class Intra(NamedTuple):
    """What of a chunk depends on no state: ``[tokens, heads, CHUNK]``, or ``[tokens, heads]`` in float32."""

    inverses: torch.Tensor
    scores: torch.Tensor
    sums: torch.Tensor
    read_fades: torch.Tensor
    write_fades: torch.Tensor
    ages: torch.Tensor


def new_intra(k: torch.Tensor, beta: torch.Tensor) -> Intra:
    """Results yet to be written."""
    tiles = (k.new_empty(*beta.shape, CHUNK) for _ in range(2))
    return Intra(*tiles, *(k.new_empty(beta.shape, dtype=torch.float32) for _ in range(4)))


def launch_gdn_intra(
    q: torch.Tensor,
    k: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    first: torch.Tensor,
    end: torch.Tensor,
    scale: float,
    normalise: bool,
    intra: Intra,
    plan: GdnIntraPlan | None = None,
) -> None:
    """Write inverses with beta in them, scores and fades of the chunks that ``first`` and ``end`` list."""
    heads, key_dim = beta.shape[1], k.shape[2]
    if plan is None:
        plan = plan_gdn_intra(key_dim, k.dtype, current_target(k.device))
    tasks = first.shape[0] * heads
    programs = min(tasks, plan.programs)
    launch(
        gdn_intra_kernel,
        (programs,),
        q,
        k,
        g.contiguous(),
        beta.contiguous(),
        *intra,
        first,
        end,
        scale,
        q.stride(0),
        k.stride(0),
        tasks,
        programs,
        HEADS=heads,
        GROUP=heads // k.shape[1],
        K=key_dim,
        BK=plan.block_k,
        CHUNK=CHUNK,
        LEVELS=CHUNK.bit_length() - 1,
        NORMALISE=normalise,
        EPS=1e-6,
        SOLVE_PRECISION=plan.solve_precision,
        num_warps=plan.warps,
    )


def gated_delta_rule_triton(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    scale: float,
    normalise: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.gated_delta_rule`."""
    q, k, v = heads_together(q), heads_together(k), heads_together(v)
    _, first, end, offsets = chunk_index_triton(cu_seqlens, q.shape[0], CHUNK)
    g, beta = g.contiguous(), beta.contiguous()
    initial = None if initial_state is None else initial_state.contiguous()
    walk = new_walk(k, v, cu_seqlens, first.shape[0])
    output = torch.empty_like(walk.deltas)
    if current_target(q.device).kind == "ascend":
        # The fused kernel's tiles do not fit the unified buffer: the parts, one after another.
        if normalise:
            q, k = l2norm_triton(q, 1e-6), l2norm_triton(k, 1e-6)
        sums = chunk_local_cumsum_triton(g, first, end, CHUNK, False, 1.0)
        matrix = scaled_dot_kkt_triton(k, beta, sums, first, end, CHUNK)
        w, u = wy_fast_triton(k, v, beta, sums, solve_tril_triton(matrix, first, end, k.dtype), first, end)
        decay = head_decay(sums, cu_seqlens, CHUNK)
        launch_chunk_delta_h(k, w, u, None, decay, cu_seqlens, offsets, CHUNK, walk, initial)
        launch_chunk_o(q, k, walk.deltas, walk.states, sums, first, end, scale, CHUNK, output=output)
        return output, walk.final
    intra = new_intra(k, beta)
    launch_gdn_intra(q, k, g, beta, first, end, scale, normalise, intra)
    decay = Decay(intra.sums, intra.write_fades, intra.read_fades)
    launch_chunk_delta_h(k, k, v, intra.inverses, decay, cu_seqlens, offsets, CHUNK, walk, initial)
    launch_chunk_o(
        q,
        None,
        walk.deltas,
        walk.states,
        None,
        first,
        end,
        1.0,
        CHUNK,
        output=output,
        scores=intra.scores,
        ages=intra.ages,
    )
    return output, walk.final
