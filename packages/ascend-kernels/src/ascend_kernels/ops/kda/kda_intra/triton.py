"""Triton kernel: everything about a chunk that does not depend on the state before it."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import product_block
from ascend_kernels.ops.fla.solve_tril.triton import unit_lower_inverse
from ascend_kernels.ops.kda.kda_intra.plan import IntraPlan, plan_kda_intra
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks", "programs"])
def kda_intra_kernel(
    queries,
    keys,
    sums,
    beta,
    inverses,
    reading_keys,
    faded_queries,
    faded_keys,
    scores,
    first,
    end,
    scale,
    query_stride,
    key_stride,
    tasks,
    programs,
    HEADS: tl.constexpr,
    K: tl.constexpr,
    CHUNK: tl.constexpr,
    LEVELS: tl.constexpr,
    BK: tl.constexpr,
    NORMALISE: tl.constexpr,
    EPS: tl.constexpr,
    SOLVE_PRECISION: tl.constexpr,
    LIMIT: tl.constexpr,
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
            weight = tl.load(beta + scalars + lane * HEADS, mask=lane < length, other=0.0).to(tl.float32)
            sum_base = sums + scalars * K
            query_base = queries + token * query_stride + head * K
            key_base = keys + token * key_stride + head * K
            key_products = tl.zeros([CHUNK, CHUNK], dtype=tl.float32)
            query_products = tl.zeros([CHUNK, CHUNK], dtype=tl.float32)
            query_squares = tl.zeros([CHUNK], dtype=tl.float32)
            key_squares = tl.zeros([CHUNK], dtype=tl.float32)
            for start in tl.range(0, K, BK, num_stages=1):
                channel = start + tl.arange(0, BK)[None, :]
                inside = (row < length) & (channel < K)
                query = tl.load(query_base + row * query_stride + channel, mask=inside, other=0.0)
                key = tl.load(key_base + row * key_stride + channel, mask=inside, other=0.0)
                wide_query = query.to(tl.float32)
                wide_key = key.to(tl.float32)
                if NORMALISE:
                    query_squares += tl.sum(wide_query * wide_query, axis=1)
                    key_squares += tl.sum(wide_key * wide_key, axis=1)
                decay = tl.load(sum_base + row * (HEADS * K) + channel, mask=inside, other=0.0)
                own = tl.sum(wide_query * wide_key, axis=1)
                query_products += tl.where(row == other, own[:, None], 0.0)
                # Pairs of tokens meet in the middle of the smallest run that holds both: keys before it fade towards
                # it, queries behind it fade from it, so no exponent is positive, however fast a channel decays. Runs
                # are halved until what is left of a run decays so little that exponents of either sign are safe.
                pending = 1
                for step in tl.range(0, LEVELS, num_stages=1):
                    if pending > 0:
                        level = LEVELS - 1 - step
                        middle_row = (row >> (level + 1) << (level + 1)) + (1 << level) - 1
                        middle = tl.load(
                            sum_base + middle_row * (HEADS * K) + channel,
                            mask=(middle_row < length) & (channel < K),
                            other=0.0,
                        )
                        apart = tl.where(inside, decay - middle, 0.0)
                        farthest = tl.max(tl.max(tl.abs(apart), axis=1), axis=0)
                        pending = tl.where(farthest > LIMIT, 1, 0)
                        behind = tl.where(farthest > LIMIT, -tl.abs(apart), apart)
                        together = (row >> (level + 1) == other >> (level + 1)) & (row > other)
                        # With exponents of either sign a run is done with; else only what crosses its middle.
                        pair = together & ((pending == 0) | (row >> level > other >> level))
                        before = tl.where(farthest > LIMIT, -tl.abs(apart), -apart)
                        key_before = tl.trans((wide_key * tl.exp(before)).to(key.dtype))
                        fade = tl.exp(behind)
                        product = tl.dot((wide_key * fade).to(key.dtype), key_before, input_precision="ieee")
                        key_products += tl.where(pair, product, 0.0)
                        product = tl.dot((wide_query * fade).to(key.dtype), key_before, input_precision="ieee")
                        query_products += tl.where(pair, product, 0.0)
            query_norm = tl.zeros([CHUNK], dtype=tl.float32) + scale
            key_norm = tl.zeros([CHUNK], dtype=tl.float32) + 1.0
            if NORMALISE:
                query_norm = scale / tl.sqrt(query_squares + EPS)
                key_norm = 1.0 / tl.sqrt(key_squares + EPS)
            query_products *= query_norm[:, None] * key_norm[None, :]
            tl.store(
                scores + scalars * CHUNK + row * (HEADS * CHUNK) + other,
                query_products.to(scores.dtype.element_ty),
                mask=row < length,
            )
            key_products *= (weight * key_norm)[:, None] * key_norm[None, :]
            inverse = unit_lower_inverse(key_products, CHUNK, LEVELS, SOLVE_PRECISION) * weight[None, :]
            tl.store(
                inverses + scalars * CHUNK + row * (HEADS * CHUNK) + other,
                inverse.to(inverses.dtype.element_ty),
                mask=row < length,
            )
            for start in tl.range(0, K, BK, num_stages=1):
                channel = start + tl.arange(0, BK)[None, :]
                inside = (row < length) & (channel < K)
                query = tl.load(query_base + row * query_stride + channel, mask=inside, other=0.0).to(tl.float32)
                key = tl.load(key_base + row * key_stride + channel, mask=inside, other=0.0).to(tl.float32)
                key *= key_norm[:, None]
                decay = tl.load(sum_base + row * (HEADS * K) + channel, mask=inside, other=0.0)
                total = tl.load(sum_base + (length - 1) * (HEADS * K) + channel, mask=channel < K, other=0.0)
                target = scalars * K + row * (HEADS * K) + channel
                fade = tl.exp(decay)
                tl.store(
                    faded_queries + target,
                    (query * query_norm[:, None] * fade).to(faded_queries.dtype.element_ty),
                    mask=inside,
                )
                # Behind the sequence's end the sums read as zero: no exponent may be positive there either.
                tl.store(
                    faded_keys + target,
                    (key * tl.exp(tl.minimum(total - decay, 0.0))).to(faded_keys.dtype.element_ty),
                    mask=inside,
                )
                tl.store(reading_keys + target, (key * fade).to(reading_keys.dtype.element_ty), mask=inside)


class KdaIntra(NamedTuple):
    """What of a chunk depends on no state, ``[tokens, heads, chunk]`` or ``[tokens, heads, key channels]``."""

    inverses: torch.Tensor
    reading_keys: torch.Tensor
    faded_queries: torch.Tensor
    faded_keys: torch.Tensor
    scores: torch.Tensor


def new_kda_intra(q: torch.Tensor, chunk: int) -> KdaIntra:
    """Results yet to be written."""
    tokens, heads, key_dim = q.shape
    return KdaIntra(*(q.new_empty(tokens, heads, size) for size in (chunk, key_dim, key_dim, key_dim, chunk)))


def launch_kda_intra(
    q: torch.Tensor,
    k: torch.Tensor,
    g_cumsum: torch.Tensor,
    beta: torch.Tensor,
    first: torch.Tensor,
    end: torch.Tensor,
    scale: float,
    normalise: bool,
    chunk: int,
    intra: KdaIntra,
    plan: IntraPlan | None = None,
) -> None:
    """Write the results for the chunks that ``first`` and ``end`` list."""
    _, heads, key_dim = q.shape
    if plan is None:
        plan = plan_kda_intra(key_dim, q.dtype, current_target(q.device))
    tasks = first.shape[0] * heads
    programs = min(tasks, plan.programs)
    beta = beta.contiguous()
    launch(
        kda_intra_kernel,
        (programs,),
        q,
        k,
        g_cumsum.contiguous(),
        beta,
        *intra,
        first,
        end,
        scale,
        q.stride(0),
        k.stride(0),
        tasks,
        programs,
        HEADS=heads,
        K=key_dim,
        CHUNK=chunk,
        LEVELS=chunk.bit_length() - 1,
        BK=product_block(key_dim, plan.block_k),
        NORMALISE=normalise,
        EPS=1e-6,
        SOLVE_PRECISION=plan.solve_precision,
        LIMIT=6.0 if q.dtype == torch.float16 else 40.0,
        num_warps=plan.warps,
    )
