"""Which tokens each chunk of a packed batch holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.chunk_index.calls import calls
from ascend_kernels.ops.fla.chunk_index.naive import chunk_index_naive
from ascend_kernels.ops.fla.chunk_index.plan import most_chunks


class ChunkIndex(NamedTuple):
    """The chunks of a packed batch, in order; entries that no chunk uses have sequence -1 and no tokens.

    Attributes:
        sequence: int32 ``[entries]``, the sequence that the chunk belongs to.
        first: int32 ``[entries]``, its first token.
        end: int32 ``[entries]``, the token behind its last.
        offsets: int32 ``[sequences + 1]``, the entry of each sequence's first chunk.
    """

    sequence: torch.Tensor
    first: torch.Tensor
    end: torch.Tensor
    offsets: torch.Tensor


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.chunk_index.triton import chunk_index_triton

    return chunk_index_triton


def _fake(
    cu_seqlens: torch.Tensor, tokens: int, chunk: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    sequences = cu_seqlens.shape[0] - 1
    entries = most_chunks(sequences, tokens, chunk)
    sequence, first, end = (cu_seqlens.new_empty(entries, dtype=torch.int32) for _ in range(3))
    return sequence, first, end, cu_seqlens.new_empty(sequences + 1, dtype=torch.int32)


_operator = register(
    "chunk_index(Tensor cu_seqlens, SymInt tokens, int chunk) -> (Tensor, Tensor, Tensor, Tensor)",
    naive=chunk_index_naive,
    triton=_triton,
    fake=_fake,
    calls=calls,
)


def chunk_index(cu_seqlens: torch.Tensor, tokens: int, chunk: int) -> ChunkIndex:
    """List the chunks of a packed batch of sequences without reading the lengths on the host.

    Each sequence is cut into chunks of ``chunk`` tokens, the last one shorter; an empty sequence has none. The result
    has as many entries as the lengths could need at most.

    Args:
        cu_seqlens: int32 or int64 ``[sequences + 1]``, first token of each sequence, not decreasing, starting at 0.
        tokens: ``cu_seqlens[-1]``, known to the caller from the shape of the packed tensors.
        chunk: tokens per chunk.
    """
    return ChunkIndex(*_operator(cu_seqlens, tokens, chunk))
