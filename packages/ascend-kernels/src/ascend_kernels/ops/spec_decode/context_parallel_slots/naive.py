"""The definition in torch."""

from __future__ import annotations

from itertools import pairwise

import torch


def context_parallel_slots_naive(
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
    slots.fill_(pad)
    starts = query_start_loc.tolist()
    span = block_size * blocks_per_page * ranks
    for request, (begin, end) in enumerate(pairwise(starts)):
        page, offset = positions[begin:end] // span, positions[begin:end] % span
        own = offset // interleave % ranks == rank
        local = offset // (ranks * interleave) * interleave + offset % interleave
        block = block_table[request, page * blocks_per_page + local // block_size].to(torch.int64)
        slots[begin:end] = torch.where(own, block * block_size + local % block_size, pad).to(slots.dtype)
