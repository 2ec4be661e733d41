"""Triton kernel: heads of one row that share keys, over a split of them; splits are merged by their log-sum-exps."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import ceil_div, launch
from ascend_kernels.ops.attention.merge_attention.triton import merge_attention_triton
from ascend_kernels.ops.attention.paged_decode_attention.plan import plan_splits
from ascend_kernels.ops.attention.tiles.plan import plan_tiles
from ascend_kernels.ops.attention.tiles.triton import add_tile, load_paged, normalised, scaled_query
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["rows", "tasks", "programs", "splits"])
def paged_rows_kernel(
    query, key_cache, value_cache, block_table, lengths, requests, selected, key_scales, value_scales, sinks,
    output, lse, scale, soft_cap,
    query_row, query_head, key_block, key_slot, key_head, value_block, value_slot, value_head, table_row,
    rows, tasks, programs, splits,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, PIECES: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
    PAGE: tl.constexpr, WINDOW: tl.constexpr, CAPPED: tl.constexpr, INT8: tl.constexpr, SINKS: tl.constexpr,
    SELECTED: tl.constexpr, CHOSEN: tl.constexpr, SPAN: tl.constexpr, GATHER: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    lane = tl.arange(0, BN)
    channel = tl.arange(0, BK)[None, :]
    column = tl.arange(0, BV)[None, :]
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        split = task % splits
        piece = (task // splits) % PIECES
        kv_head = (task // (splits * PIECES)) % KV_HEADS
        row = task // (splits * PIECES * KV_HEADS)
        member = piece * BM + tl.arange(0, BM)
        here = member < GROUP
        head = kv_head * GROUP + member
        length = tl.load(lengths + row).to(tl.int32)
        request = row
        if SELECTED > 0:
            request = tl.load(requests + row).to(tl.int32)
        table = block_table + as_int64(request) * table_row
        rows_of_query = query + as_int64(row) * query_row + head[:, None] * query_head
        values = tl.load(rows_of_query + channel, mask=here[:, None] & (channel < K), other=0.0)
        values, factor = scaled_query(values, key_scales + kv_head * K if INT8 else key_scales, scale, INT8, K, BK)
        first, last = 0, (length + SPAN - 1) // SPAN
        if SELECTED > 0:
            last = SELECTED * (CHOSEN // SPAN)
        elif WINDOW > 0:
            first = tl.maximum(length - WINDOW, 0) // SPAN
        share = (last - first + splits - 1) // splits
        begin = first + split * share
        highest = tl.zeros([BM], dtype=tl.float32) + float("-inf")
        weight = tl.zeros([BM], dtype=tl.float32)
        if SINKS:
            # The first split counts the sink; the others start from nothing.
            sink = tl.load(sinks + head, mask=here, other=0.0).to(tl.float32)
            highest = tl.where(split == 0, sink, highest)
            weight = tl.where(split == 0, 1.0, weight)
        sums = tl.zeros([BM, BV], dtype=tl.float32)
        for tile in tl.range(begin, tl.minimum(begin + share, last), num_stages=STAGES):
            start = tile * SPAN
            if SELECTED > 0:
                list_of_row = selected + (as_int64(row) * KV_HEADS + kv_head) * SELECTED
                block = tl.load(list_of_row + tile // (CHOSEN // SPAN)).to(tl.int32)
                # A block that is not there has no keys.
                start = tl.where(block < 0, length, block * CHOSEN + (tile % (CHOSEN // SPAN)) * SPAN)
            count = tl.maximum(tl.minimum(length - start, SPAN), 0)
            at = tl.where(count > 0, start, 0)
            key = load_paged(
                key_cache + kv_head * key_head, table, at, count, key_block, key_slot, PAGE, GATHER, BN, K, BK
            )
            value = load_paged(
                value_cache + kv_head * value_head, table, at, count, value_block, value_slot, PAGE, GATHER, BN, V, BV
            )
            visible = lane < count
            if WINDOW > 0:
                visible = visible & (at + lane >= length - WINDOW)
            highest, weight, sums = add_tile(
                values, key, value, visible[None, :], highest, weight, sums, factor, soft_cap, CAPPED
            )
        result, total = normalised(highest, weight, sums)
        if INT8:
            scales = tl.load(value_scales + kv_head * V + column, mask=column < V, other=0.0)
            result = result * scales
        place = (as_int64(split) * rows + row) * (KV_HEADS * GROUP) + head
        tl.store(
            output + place[:, None] * V + column, result.to(output.dtype.element_ty), mask=here[:, None] & (column < V)
        )
        tl.store(lse + place, total, mask=here)


def launch_paged_rows(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    requests: torch.Tensor | None,
    selected: torch.Tensor | None,
    block: int,
    key_scale: torch.Tensor | None,
    value_scale: torch.Tensor | None,
    sinks: torch.Tensor | None,
    scale: float,
    window: int,
    soft_cap: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of rows over the keys of their requests, up to each row's length: all, or selected blocks of them."""
    rows, heads, key_size = query.shape
    page, kv_heads, value_size = value_cache.shape[1:]
    output = query.new_empty(rows, heads, value_size)
    lse = query.new_empty(rows, heads, dtype=torch.float32)
    if output.numel() == 0:
        return output, lse.fill_(float("-inf"))
    target = current_target(query.device)
    quantised = key_scale is not None
    group = heads // kv_heads
    chosen = 0 if selected is None else selected.shape[2]
    tile = plan_tiles(target, group, key_size, value_size, query.itemsize, page, block, quantised)
    keys = chosen * block if chosen else block_table.shape[1] * page
    plan = plan_splits(target, rows, kv_heads, group, tile.rows, ceil_div(keys, tile.span))
    if plan.splits > 1:
        parts = query.new_empty(plan.splits, rows, heads, value_size, dtype=torch.float32)
        part_lses = lse.new_empty(plan.splits, rows, heads)
    else:
        parts, part_lses = output[None], lse[None]
    launch(
        paged_rows_kernel,
        (plan.programs,),
        query,
        key_cache,
        value_cache,
        block_table,
        lengths,
        requests,
        selected,
        None if key_scale is None else key_scale.contiguous(),
        None if value_scale is None else value_scale.contiguous(),
        sinks,
        parts,
        part_lses,
        float(scale),
        float(soft_cap),
        *query.stride()[:2],
        *key_cache.stride()[:3],
        *value_cache.stride()[:3],
        block_table.stride(0),
        rows,
        plan.tasks,
        plan.programs,
        plan.splits,
        KV_HEADS=kv_heads,
        GROUP=group,
        PIECES=plan.pieces,
        K=key_size,
        V=value_size,
        PAGE=page,
        WINDOW=window,
        CAPPED=soft_cap > 0,
        INT8=quantised,
        SINKS=sinks is not None,
        SELECTED=chosen,
        CHOSEN=block,
        SPAN=tile.span,
        GATHER=tile.gather,
        BM=tile.rows,
        BN=tile.keys,
        BK=tile.depth,
        BV=tile.width,
        STAGES=tile.stages,
        num_warps=tile.warps,
    )
    if plan.splits == 1:
        return output, lse
    merged, lse = merge_attention_triton(parts, part_lses)
    return merged.to(query.dtype), lse


def paged_decode_attention_triton(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    key_scale: torch.Tensor | None,
    value_scale: torch.Tensor | None,
    sinks: torch.Tensor | None,
    scale: float,
    window: int,
    soft_cap: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.paged_decode_attention`."""
    return launch_paged_rows(
        query, key_cache, value_cache, block_table, seq_lens, None, None, 0, key_scale, value_scale, sinks, scale,
        window, soft_cap,
    )  # fmt: skip
