"""Triton kernel: a program writes the rows of one request."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import MAX_PROGRAMS, launch, next_power_of_two
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["requests", "table_stride", "block_size", "queries", "mask_token", "max_length", "pad"])
def parallel_draft_inputs_kernel(
    next_tokens,
    positions,
    query_start_loc,
    rejected,
    block_table,
    draft_ids,
    draft_positions,
    slots,
    requests,
    table_stride,
    block_size,
    queries,
    mask_token,
    max_length,
    pad,
    HAS_REJECTED: tl.constexpr,
    QUERIES: tl.constexpr,
):
    query = tl.arange(0, QUERIES)
    inside = query < queries
    for request in range(tl.program_id(0).to(tl.int64), requests, tl.num_programs(0)):
        last = tl.load(query_start_loc + request + 1).to(tl.int32) - 1
        if HAS_REJECTED:
            last -= tl.load(rejected + request).to(tl.int32)
        wanted = tl.load(positions + last).to(tl.int32) + 1 + query
        place = tl.minimum(wanted, max_length - 1)
        index = place // block_size
        block = tl.load(block_table + request * table_stride + index, mask=inside, other=0).to(tl.int32)
        slot = tl.where(wanted < max_length, block * block_size + place - index * block_size, pad)
        token = tl.where(query == 0, tl.load(next_tokens + request).to(tl.int32), mask_token)
        tl.store(draft_ids + request * queries + query, token, mask=inside)
        tl.store(draft_positions + request * queries + query, place.to(tl.int64), mask=inside)
        tl.store(slots + request * queries + query, slot, mask=inside)


def parallel_draft_inputs_triton(
    next_tokens: torch.Tensor,
    positions: torch.Tensor,
    query_start_loc: torch.Tensor,
    rejected: torch.Tensor | None,
    block_table: torch.Tensor,
    block_size: int,
    queries: int,
    mask_token: int,
    max_length: int,
    pad: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.parallel_draft_inputs`."""
    requests = next_tokens.shape[0]
    ids, slots = (next_tokens.new_empty(requests * queries, dtype=torch.int32) for _ in range(2))
    places = positions.new_empty(requests * queries)
    target = current_target(next_tokens.device)
    launch(
        parallel_draft_inputs_kernel,
        (min(requests, target.vector_cores if target.kind == "ascend" else MAX_PROGRAMS),),
        next_tokens,
        positions,
        query_start_loc,
        rejected,
        block_table,
        ids,
        places,
        slots,
        requests,
        block_table.stride(0),
        block_size,
        queries,
        mask_token,
        max_length,
        pad,
        HAS_REJECTED=rejected is not None,
        QUERIES=next_power_of_two(queries),
        num_warps=1,
    )
    return ids, places, slots
