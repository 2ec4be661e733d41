"""Slots of a batch of tokens in a paged KV cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.inputs.slot_mapping.calls import calls
from ascend_kernels.ops.inputs.slot_mapping.naive import slot_mapping_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.inputs.slot_mapping.triton import slot_mapping_triton

    return slot_mapping_triton


_operator = register(
    "slot_mapping(Tensor query_start_loc, Tensor positions, Tensor block_table, int block_size, "
    "Tensor(a!) slots, int pad) -> ()",
    naive=slot_mapping_naive,
    triton=_triton,
    calls=calls,
)


def slot_mapping(
    query_start_loc: torch.Tensor,
    positions: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    slots: torch.Tensor,
    pad: int = -1,
) -> None:
    """Write where each token's key and value go in a paged cache.

    For token ``t`` of request ``r`` (``query_start_loc[r] <= t < query_start_loc[r + 1]``) at position ``p``,
    ``slots[t] = block_table[r, p // block_size] * block_size + p % block_size``. Tokens after the last request and the
    rest of ``slots`` become ``pad``.

    Args:
        query_start_loc: int32 ``[requests + 1]``, first token of each request, not decreasing, starting at 0.
        positions: int64 ``[tokens]``, position of each token in its sequence.
        block_table: int32 ``[>= requests, blocks]``, page numbers; rows may be strided.
        block_size: tokens per page.
        slots: int32 or int64 ``[>= tokens]``, written in place.
        pad: value of slots that belong to no token.
    """
    _operator(query_start_loc, positions, block_table, block_size, slots, pad)
