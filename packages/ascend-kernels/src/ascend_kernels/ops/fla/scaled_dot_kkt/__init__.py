"""Products of the keys of a chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.chunk_index import ChunkIndex
from ascend_kernels.ops.fla.scaled_dot_kkt.calls import calls
from ascend_kernels.ops.fla.scaled_dot_kkt.naive import scaled_dot_kkt_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.scaled_dot_kkt.triton import scaled_dot_kkt_triton

    return scaled_dot_kkt_triton


def _fake(
    k: torch.Tensor,
    beta: torch.Tensor,
    g_cumsum: torch.Tensor | None,
    first: torch.Tensor,
    end: torch.Tensor,
    chunk: int,
) -> torch.Tensor:
    return k.new_empty(*beta.shape, chunk, dtype=torch.float32)


_operator = register(
    "scaled_dot_kkt(Tensor k, Tensor beta, Tensor? g_cumsum, Tensor first, Tensor end, int chunk) -> Tensor",
    naive=scaled_dot_kkt_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def scaled_dot_kkt(
    k: torch.Tensor, beta: torch.Tensor, g_cumsum: torch.Tensor | None, index: ChunkIndex, chunk: int
) -> torch.Tensor:
    """``A[i, j] = beta_i (k_i . k_j) exp(G_i - G_j)`` for tokens ``j < i`` of a chunk, else 0.

    Args:
        k: fp16, bf16 or fp32 ``[tokens, key heads, K]``, normalised.
        beta: ``[tokens, value heads]``, a multiple of the key heads.
        g_cumsum: fp32 ``[tokens, value heads]``, chunk-local sums of the logarithms of the decays, which are never
            positive; None for no decay.
        index: from :func:`ascend_kernels.chunk_index`.
        chunk: tokens per chunk, a power of two of at least 16.

    Returns:
        fp32 ``[tokens, value heads, chunk]``: row ``i`` of token ``i``'s chunk.
    """
    return _operator(k, beta, g_cumsum, index.first, index.end, chunk)
