"""Triton kernel: a chunk of one sequence's queries, of one head, over the tiles of keys that it sees."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import MAX_PROGRAMS, launch
from ascend_kernels.ops.attention.tiles.plan import plan_tiles
from ascend_kernels.ops.attention.tiles.triton import add_tile, load_paged, load_rows, normalised, scaled_query
from ascend_kernels.ops.fla.chunk_index.triton import chunk_index_triton
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks", "programs"])
def varlen_attention_kernel(
    query, keys, values, cu_seqlens, key_lens, block_table, key_scales, value_scales, sinks, sequence, first, end,
    output, lse, scale, soft_cap,
    query_row, query_head, key_block, key_slot, key_head, value_block, value_slot, value_head, table_row,
    tasks, programs,
    HEADS: tl.constexpr, GROUP: tl.constexpr, K: tl.constexpr, V: tl.constexpr, PAGE: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, CAPPED: tl.constexpr, INT8: tl.constexpr, SINKS: tl.constexpr,
    SPAN: tl.constexpr, GATHER: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    row = tl.arange(0, BM)
    lane = tl.arange(0, BN)[None, :]
    column = tl.arange(0, BV)[None, :]
    # Chunks of one head follow one another; the last of a sequence, which see most, come first.
    chunks = tasks // HEADS
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        chunk = chunks - 1 - task % chunks
        head = task // chunks
        kv_head = head // GROUP
        begin = tl.load(first + chunk)
        count = tl.load(end + chunk) - begin
        if count > 0:
            n = tl.load(sequence + chunk)
            start_of_queries = tl.load(cu_seqlens + n).to(tl.int32)
            queries = tl.load(cu_seqlens + n + 1).to(tl.int32) - start_of_queries
            start_of_keys = tl.load(key_lens + n).to(tl.int32)
            length = start_of_keys
            if PAGE == 0:
                length = tl.load(key_lens + n + 1).to(tl.int32) - start_of_keys
            # The last query stands at the last key.
            own = length - queries + begin - start_of_queries + row
            tile_query = load_rows(query + head * query_head, as_int64(begin) * query_row, count, query_row, BM, K, BK)
            tile_query, factor = scaled_query(
                tile_query, key_scales + kv_head * K if INT8 else key_scales, scale, INT8, K, BK
            )
            low, high = 0, length
            if CAUSAL:
                high = tl.minimum(length, length - queries + begin - start_of_queries + count)
            if WINDOW > 0:
                low = tl.maximum(length - queries + begin - start_of_queries + 1 - WINDOW, 0)
            highest = tl.zeros([BM], dtype=tl.float32) + float("-inf")
            weight = tl.zeros([BM], dtype=tl.float32)
            if SINKS:
                highest = tl.zeros([BM], dtype=tl.float32) + tl.load(sinks + head).to(tl.float32)
                weight += 1.0
            sums = tl.zeros([BM, BV], dtype=tl.float32)
            for tile in tl.range(low // SPAN, (high + SPAN - 1) // SPAN, num_stages=STAGES):
                start = tile * SPAN
                there = tl.minimum(length - start, SPAN)
                if PAGE > 0:
                    table = block_table + as_int64(n) * table_row
                    key = load_paged(
                        keys + kv_head * key_head, table, start, there, key_block, key_slot, PAGE, GATHER, BN, K, BK
                    )
                    value = load_paged(
                        values + kv_head * value_head, table, start, there, value_block, value_slot, PAGE, GATHER,
                        BN, V, BV,
                    )  # fmt: skip
                else:
                    at = as_int64(start_of_keys) + start
                    key = load_rows(keys + kv_head * key_head, at * key_slot, there, key_slot, BN, K, BK)
                    value = load_rows(values + kv_head * value_head, at * value_slot, there, value_slot, BN, V, BV)
                visible = lane < there
                if CAUSAL:
                    visible = visible & (start + lane <= own[:, None])
                if WINDOW > 0:
                    visible = visible & (start + lane > own[:, None] - WINDOW)
                highest, weight, sums = add_tile(
                    tile_query, key, value, visible, highest, weight, sums, factor, soft_cap, CAPPED
                )
            result, total = normalised(highest, weight, sums)
            if INT8:
                scales = tl.load(value_scales + kv_head * V + column, mask=column < V, other=0.0)
                result = result * scales
            place = as_int64(begin) * HEADS + row * HEADS + head
            tl.store(
                output + place[:, None] * V + column,
                result.to(output.dtype.element_ty),
                mask=(row < count)[:, None] & (column < V),
            )
            tl.store(lse + place, total, mask=row < count)


def varlen_attention_triton(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seqlens: torch.Tensor,
    key_lens: torch.Tensor,
    block_table: torch.Tensor | None,
    key_scale: torch.Tensor | None,
    value_scale: torch.Tensor | None,
    sinks: torch.Tensor | None,
    scale: float,
    causal: bool,
    window: int,
    soft_cap: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.varlen_attention`."""
    tokens, heads, key_size = query.shape
    kv_heads, value_size = value.shape[-2:]
    output = query.new_empty(tokens, heads, value_size)
    lse = query.new_empty(tokens, heads, dtype=torch.float32)
    if output.numel() == 0:
        return output, lse.fill_(float("-inf"))
    target = current_target(query.device)
    paged, quantised = block_table is not None, key_scale is not None
    page = key.shape[1] if paged else 0
    tile = plan_tiles(target, tokens, key_size, value_size, query.itemsize, page, 0, quantised)
    sequence, first, end, _ = chunk_index_triton(cu_seqlens, tokens, tile.rows)
    tasks = sequence.shape[0] * heads
    programs = min(tasks, MAX_PROGRAMS if target.kind == "cuda" else target.cube_cores)
    launch(
        varlen_attention_kernel,
        (programs,),
        query,
        key,
        value,
        cu_seqlens,
        key_lens,
        block_table,
        None if key_scale is None else key_scale.contiguous(),
        None if value_scale is None else value_scale.contiguous(),
        sinks,
        sequence,
        first,
        end,
        output,
        lse,
        float(scale),
        float(soft_cap),
        *query.stride()[:2],
        *(key.stride()[:3] if paged else (0, *key.stride()[:2])),
        *(value.stride()[:3] if paged else (0, *value.stride()[:2])),
        0 if block_table is None else block_table.stride(0),
        tasks,
        programs,
        HEADS=heads,
        GROUP=heads // kv_heads,
        K=key_size,
        V=value_size,
        PAGE=page,
        CAUSAL=causal,
        WINDOW=window,
        CAPPED=soft_cap > 0,
        INT8=quantised,
        SINKS=sinks is not None,
        SPAN=tile.span,
        GATHER=tile.gather,
        BM=tile.rows,
        BN=tile.keys,
        BK=tile.depth,
        BV=tile.width,
        STAGES=tile.stages,
        num_warps=tile.warps,
    )
    return output, lse
