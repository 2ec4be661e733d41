"""Outputs of chunks from the states at their starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.chunk_index import ChunkIndex
from ascend_kernels.ops.fla.chunk_o.calls import calls
from ascend_kernels.ops.fla.chunk_o.naive import chunk_o_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.chunk_o.triton import chunk_o_triton

    return chunk_o_triton


def _fake(q: torch.Tensor, k: torch.Tensor, deltas: torch.Tensor, *_: object) -> torch.Tensor:
    return deltas.new_empty(deltas.shape)


_operator = register(
    "chunk_o(Tensor q, Tensor k, Tensor deltas, Tensor states, Tensor? g_cumsum, Tensor first, Tensor end, "
    "float scale, int chunk) -> Tensor",
    naive=chunk_o_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def chunk_o(
    q: torch.Tensor,
    k: torch.Tensor,
    deltas: torch.Tensor,
    states: torch.Tensor,
    g_cumsum: torch.Tensor | None,
    index: ChunkIndex,
    scale: float,
    chunk: int,
) -> torch.Tensor:
    """``o = scale (exp(G) q S + tril(q k^T exp(G_i - G_j)) delta)``.

    Args:
        q: ``[tokens, key heads, K]``.
        k: ``[tokens, key heads, K]``.
        deltas: ``[tokens, value heads, V]``, from :func:`ascend_kernels.chunk_delta_h`.
        states: ``[entries of index, value heads, K, V]``, likewise.
        g_cumsum: fp32 ``[tokens, value heads]``, chunk-local sums; None for no decay.
        index: from :func:`ascend_kernels.chunk_index`.
        scale: of the outputs, usually ``K ** -0.5``.
        chunk: tokens per chunk, a power of two of at least 16.

    Returns:
        ``[tokens, value heads, V]`` in the dtype of ``deltas``.
    """
    return _operator(q, k, deltas, states, g_cumsum, index.first, index.end, scale, chunk)
