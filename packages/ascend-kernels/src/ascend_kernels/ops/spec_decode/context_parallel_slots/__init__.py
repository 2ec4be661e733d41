"""Slots of tokens in a paged KV cache whose sequences are spread over ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.spec_decode.context_parallel_slots.calls import calls
from ascend_kernels.ops.spec_decode.context_parallel_slots.naive import context_parallel_slots_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.spec_decode.context_parallel_slots.triton import context_parallel_slots_triton

    return context_parallel_slots_triton


_operator = register(
    "context_parallel_slots(Tensor query_start_loc, Tensor positions, Tensor block_table, int block_size, "
    "int blocks_per_page, int ranks, int rank, int interleave, Tensor(a!) slots, int pad) -> ()",
    naive=context_parallel_slots_naive,
    triton=_triton,
    calls=calls,
)


def context_parallel_slots(
    query_start_loc: torch.Tensor,
    positions: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    slots: torch.Tensor,
    *,
    ranks: int,
    rank: int,
    interleave: int = 1,
    blocks_per_page: int = 1,
    pad: int = -1,
) -> None:
    """Write where each token's key and value go on this rank; a token of another rank gets ``pad``.

    Ranks take turns of ``interleave`` tokens. A page of the cache holds ``blocks_per_page`` blocks per rank, so that a
    page number covers ``block_size * blocks_per_page * ranks`` positions of a sequence.

    Args:
        query_start_loc: int32 ``[requests + 1]``, first token of each request, not decreasing, starting at 0.
        positions: int64 ``[tokens]``, below 2**31.
        block_table: int32 ``[>= requests, blocks]``, block numbers, ``blocks_per_page`` for each page; rows may be
            strided.
        block_size: tokens per block, of the kernels and not of the cache's manager where the two differ.
        slots: int32 or int64 ``[>= tokens]``, written in place; the rest becomes ``pad``.
        ranks: how many ranks share a sequence.
        rank: this one.
        interleave: tokens per turn; divides ``block_size * blocks_per_page``.
        blocks_per_page: blocks of a page of the cache's manager.
        pad: value of slots that belong to no token of this rank.

    Raises:
        ValueError: the rank is not one of the ranks, or the turns do not fit into a page.
    """
    if not 0 <= rank < ranks or interleave < 1 or block_size * blocks_per_page % interleave:
        raise ValueError(
            f"context_parallel_slots: rank {rank} of {ranks}, interleave {interleave}, pages of {blocks_per_page} "
            f"blocks of {block_size} tokens: 0 <= rank < ranks, and turns must fill a page exactly"
        )
    if slots.shape[0] < positions.shape[0]:
        raise ValueError(f"context_parallel_slots: {slots.shape[0]} slots for {positions.shape[0]} tokens")
    _operator(query_start_loc, positions, block_table, block_size, blocks_per_page, ranks, rank, interleave, slots, pad)
