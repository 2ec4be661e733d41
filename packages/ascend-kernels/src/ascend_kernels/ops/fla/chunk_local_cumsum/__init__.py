"""Prefix sums within chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.chunk_index import ChunkIndex
from ascend_kernels.ops.fla.chunk_local_cumsum.calls import calls
from ascend_kernels.ops.fla.chunk_local_cumsum.naive import chunk_local_cumsum_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.chunk_local_cumsum.triton import chunk_local_cumsum_triton

    return chunk_local_cumsum_triton


def _fake(values: torch.Tensor, *_: object) -> torch.Tensor:
    return torch.empty_like(values, dtype=torch.float32, memory_format=torch.contiguous_format)


_operator = register(
    "chunk_local_cumsum(Tensor values, Tensor first, Tensor end, int chunk, bool reverse, float scale) -> Tensor",
    naive=chunk_local_cumsum_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def chunk_local_cumsum(
    values: torch.Tensor, index: ChunkIndex, chunk: int, reverse: bool = False, scale: float = 1.0
) -> torch.Tensor:
    """Sum along the tokens of each chunk: of a token and those before it, or with ``reverse`` those behind it.

    Args:
        values: fp16, bf16 or fp32 ``[tokens, ...]``; of the gated delta rule, the logarithms of the decays.
        index: from :func:`ascend_kernels.chunk_index`.
        chunk: tokens per chunk, a power of two.
        reverse: sum from the end of the chunk.
        scale: multiplies the sums.

    Returns:
        fp32, in the shape of ``values``.
    """
    return _operator(values, index.first, index.end, chunk, reverse, scale)
