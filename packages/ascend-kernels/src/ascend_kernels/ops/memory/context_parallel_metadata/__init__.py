"""What of a batch belongs to one rank of context parallelism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.memory.context_parallel_metadata.calls import calls
from ascend_kernels.ops.memory.context_parallel_metadata.naive import context_parallel_metadata_naive


class ContextParallelMetadata(NamedTuple):
    """A rank's part of a batch.

    Attributes:
        query_start_loc: int32 ``[requests + 1]``, where each request's tokens begin among the rank's, from 0 on.
        seq_lens: int32 ``[requests]``, keys that the last of a request's tokens here sees; 0 where it has none here.
        start_positions: int32 ``[requests]``, position of the request's first token in this step, on whatever rank.
    """

    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    start_positions: torch.Tensor


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.memory.context_parallel_metadata.triton import context_parallel_metadata_triton

    return context_parallel_metadata_triton


def _fake(
    query_start_loc: torch.Tensor, seq_lens: torch.Tensor, begin: int, end: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    starts = query_start_loc.new_empty(query_start_loc.shape, dtype=torch.int32)
    return starts, *(seq_lens.new_empty(seq_lens.shape, dtype=torch.int32) for _ in range(2))


_operator = register(
    "context_parallel_metadata(Tensor query_start_loc, Tensor seq_lens, SymInt begin, SymInt end) "
    "-> (Tensor, Tensor, Tensor)",
    naive=context_parallel_metadata_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def context_parallel_metadata(
    query_start_loc: torch.Tensor, seq_lens: torch.Tensor, begin: int, end: int
) -> ContextParallelMetadata:
    """Requests of a batch as a rank sees them that computes the tokens from ``begin`` to ``end``.

    Args:
        query_start_loc: int32 or int64 ``[requests + 1]``, first token of each request, not decreasing, from 0 on.
        seq_lens: int32 or int64 ``[requests]``, length of each sequence after this step.
        begin: the rank's first token in the batch.
        end: the token behind its last; behind the batch's last if the batch is padded.

    Raises:
        ValueError: shapes that do not go together, or an end before the beginning.
    """
    if query_start_loc.dim() != 1 or query_start_loc.shape[0] != seq_lens.shape[0] + 1 or seq_lens.dim() != 1:
        raise ValueError(
            f"context_parallel_metadata: query_start_loc {tuple(query_start_loc.shape)} and seq_lens "
            f"{tuple(seq_lens.shape)}: [requests + 1] and [requests] go"
        )
    if not 0 <= begin <= end:
        raise ValueError(f"context_parallel_metadata: tokens from {begin} to {end}: 0 <= begin <= end goes")
    return ContextParallelMetadata(*_operator(query_start_loc, seq_lens, begin, end))
