"""Triton kernel: all heads of a token against tiles of its keys, summed over the heads on chip."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.attention.tiles.triton import load_paged
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.ops.sparse.indexer_scores.plan import plan_indexer
from ascend_kernels.target import current_target


@triton.jit
def tile_scores(query, weight, key):
    """fp32 ``[BN]``: weighted sums over heads of the positive parts of products."""
    products = tl.dot(query, tl.trans(key), input_precision="ieee")
    return tl.sum(tl.maximum(products, 0.0) * weight[:, None], axis=0)


@triton.jit(do_not_specialize=["tasks", "programs", "shares", "width"])
def indexer_scores_kernel(
    query, weights, key_cache, block_table, requests, lengths, scores,
    query_row, query_head, weight_row, key_block, key_slot, table_row, width, tasks, programs, shares,
    HEADS: tl.constexpr, SIZE: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr,
    BH: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    head = tl.arange(0, BH)
    lane = tl.arange(0, BN)
    channel = tl.arange(0, BK)[None, :]
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        token = task // shares
        length = tl.load(lengths + token).to(tl.int32)
        request = tl.load(requests + token)
        table = block_table + as_int64(request) * table_row
        rows = query + as_int64(token) * query_row + head[:, None] * query_head
        values = tl.load(rows + channel, mask=(head[:, None] < HEADS) & (channel < SIZE), other=0.0)
        weight = tl.load(weights + as_int64(token) * weight_row + head, mask=head < HEADS, other=0.0).to(tl.float32)
        of_token = scores + as_int64(token) * width
        if BLOCK == 1:
            for tile in tl.range(task % shares, (length + SPAN - 1) // SPAN, shares, num_stages=1):
                start = tile * SPAN
                count = tl.minimum(length - start, SPAN)
                key = load_paged(key_cache, table, start, count, key_block, key_slot, PAGE, False, BN, SIZE, BK)
                tl.store(of_token + start + lane, tile_scores(values, weight, key), mask=lane < count)
        else:
            for block in tl.range(task % shares, (length + BLOCK - 1) // BLOCK, shares, num_stages=1):
                highest = tl.zeros([BN], dtype=tl.float32) + float("-inf")
                for piece in tl.range(0, BLOCK // SPAN, num_stages=1):
                    start = block * BLOCK + piece * SPAN
                    count = tl.maximum(tl.minimum(length - start, SPAN), 0)
                    key = load_paged(key_cache, table, start, count, key_block, key_slot, PAGE, False, BN, SIZE, BK)
                    highest = tl.where(lane < count, tl.maximum(highest, tile_scores(values, weight, key)), highest)
                tl.store(of_token + block, tl.max(highest, axis=0))


def indexer_scores_triton(
    query: torch.Tensor,
    weights: torch.Tensor,
    key_cache: torch.Tensor,
    block_table: torch.Tensor,
    requests: torch.Tensor,
    lengths: torch.Tensor,
    block: int,
) -> torch.Tensor:
    """See :func:`ascend_kernels.indexer_scores`."""
    tokens, heads, size = query.shape
    page = key_cache.shape[1]
    keys = block_table.shape[1] * page
    scores = torch.full((tokens, keys // block), float("-inf"), dtype=torch.float32, device=query.device)
    plan = plan_indexer(current_target(query.device), tokens, heads, size, page, block, keys)
    weights = weights if weights.stride(1) == 1 else weights.contiguous()
    launch(
        indexer_scores_kernel,
        (plan.programs,),
        query,
        weights,
        key_cache,
        block_table,
        requests,
        lengths,
        scores,
        *query.stride()[:2],
        weights.stride(0),
        *key_cache.stride()[:2],
        block_table.stride(0),
        keys // block,
        plan.tasks,
        plan.programs,
        plan.shares,
        HEADS=heads,
        SIZE=size,
        PAGE=page,
        BLOCK=block,
        SPAN=plan.span,
        BH=plan.heads,
        BN=plan.keys,
        BK=plan.depth,
        num_warps=plan.warps,
    )
    return scores
