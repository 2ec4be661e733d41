"""Triton kernel: a program takes whole requests, one more the padding."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import MAX_PROGRAMS, launch

BLOCK = 1024


@triton.jit(
    do_not_specialize=["requests", "table_stride", "num_slots", "pad", "rank"],
)
def context_parallel_slots_kernel(
    query_start_loc,
    positions,
    block_table,
    slots,
    requests,
    table_stride,
    num_slots,
    pad,
    rank,
    BLOCK_SIZE: tl.constexpr,
    BLOCKS_PER_PAGE: tl.constexpr,
    RANKS: tl.constexpr,
    INTERLEAVE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    lane = tl.arange(0, BLOCK)
    for request in range(tl.program_id(0), requests + 1, tl.num_programs(0)):
        first = tl.load(query_start_loc + request)
        if request == requests:
            for start in range(first, num_slots, BLOCK):
                token = start + lane
                tl.store(slots + token, tl.zeros([BLOCK], dtype=tl.int32) + pad, mask=token < num_slots)
        else:
            end = tl.load(query_start_loc + request + 1)
            row = block_table + request * table_stride
            for start in range(first, end, BLOCK):
                token = start + lane
                inside = token < end
                position = tl.load(positions + token, mask=inside, other=0).to(tl.int32)
                page = position // (BLOCK_SIZE * BLOCKS_PER_PAGE * RANKS)
                offset = position - page * (BLOCK_SIZE * BLOCKS_PER_PAGE * RANKS)
                stripe = offset // INTERLEAVE
                turn = stripe // RANKS
                local = turn * INTERLEAVE + offset - stripe * INTERLEAVE
                index = local // BLOCK_SIZE
                block = tl.load(row + page * BLOCKS_PER_PAGE + index, mask=inside, other=0).to(tl.int32)
                slot = block * BLOCK_SIZE + local - index * BLOCK_SIZE
                slot = tl.where(stripe - turn * RANKS == rank, slot, pad)
                tl.store(slots + token, slot, mask=inside)


def context_parallel_slots_triton(
    query_start_loc: torch.Tensor,
    positions: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    blocks_per_page: int,
    ranks: int,
    rank: int,
    interleave: int,
    slots: torch.Tensor,
    pad: int,
) -> None:
    """See :func:`ascend_kernels.context_parallel_slots`."""
    requests = query_start_loc.shape[0] - 1
    launch(
        context_parallel_slots_kernel,
        (min(requests + 1, MAX_PROGRAMS) if slots.shape[0] else 0,),
        query_start_loc,
        positions,
        block_table,
        slots,
        requests,
        block_table.stride(0),
        slots.shape[0],
        pad,
        rank,
        BLOCK_SIZE=block_size,
        BLOCKS_PER_PAGE=blocks_per_page,
        RANKS=ranks,
        INTERLEAVE=interleave,
        BLOCK=BLOCK,
    )
