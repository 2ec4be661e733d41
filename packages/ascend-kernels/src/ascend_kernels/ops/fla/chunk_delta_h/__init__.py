"""The walk over the chunks of a sequence: the state at the start of each, and what chunks do to a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.chunk_delta_h.calls import calls, transition_calls
from ascend_kernels.ops.fla.chunk_delta_h.naive import chunk_delta_h_naive, chunk_transition_naive
from ascend_kernels.ops.fla.chunk_index import ChunkIndex


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.chunk_delta_h.triton import chunk_delta_h_triton

    return chunk_delta_h_triton


def _transition_triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.chunk_delta_h.triton import chunk_transition_triton

    return chunk_transition_triton


def _fake(
    k: torch.Tensor,
    w: torch.Tensor,
    u: torch.Tensor,
    g_cumsum: torch.Tensor | None,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    offsets: torch.Tensor,
    entries: int,
    chunk: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    _, heads, value_dim = u.shape
    final = k.new_empty(cu_seqlens.shape[0] - 1, heads, k.shape[2], value_dim, dtype=torch.float32)
    return k.new_empty(entries, heads, k.shape[2], value_dim), u.new_empty(u.shape), final


def _transition_fake(
    k: torch.Tensor, w: torch.Tensor, g_cumsum: torch.Tensor | None, cu_seqlens: torch.Tensor, chunk: int
) -> torch.Tensor:
    return k.new_empty(cu_seqlens.shape[0] - 1, w.shape[1], k.shape[2], k.shape[2], dtype=torch.float32)


_operator = register(
    "chunk_delta_h(Tensor k, Tensor w, Tensor u, Tensor? g_cumsum, Tensor? initial_state, Tensor cu_seqlens, "
    "Tensor offsets, SymInt entries, int chunk) -> (Tensor, Tensor, Tensor)",
    naive=chunk_delta_h_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)
_transition_operator = register(
    "chunk_transition(Tensor k, Tensor w, Tensor? g_cumsum, Tensor cu_seqlens, int chunk) -> Tensor",
    naive=chunk_transition_naive,
    triton=_transition_triton,
    calls=transition_calls,
    fake=_transition_fake,
)


def chunk_delta_h(
    k: torch.Tensor,
    w: torch.Tensor,
    u: torch.Tensor,
    g_cumsum: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    index: ChunkIndex,
    chunk: int,
    initial_state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Walk over the chunks: ``delta = u - w S``, ``S <- exp(G_last) S + k^T (exp(G_last - G) delta)``.

    Args:
        k: ``[tokens, key heads, K]``, K at most 256.
        w: ``[tokens, value heads, K]``, from :func:`ascend_kernels.wy_fast`.
        u: ``[tokens, value heads, V]``, likewise.
        g_cumsum: chunk-local sums of the logarithms of the decays, fp32 ``[tokens, value heads]``, or per key channel
            ``[tokens, value heads, K]`` with keys that already are ``exp(G_last - G) k``; None for no decay.
        cu_seqlens: ``[sequences + 1]``.
        index: from :func:`ascend_kernels.chunk_index` for ``chunk`` tokens.
        chunk: tokens per chunk, a power of two of at least 16.
        initial_state: ``[sequences, value heads, K, V]``; None for zeros.

    Returns:
        States at the start of each chunk ``[entries of index, value heads, K, V]`` in the keys' dtype (undefined where
        no chunk uses an entry), deltas ``[tokens, value heads, V]``, final states fp32 ``[sequences, value heads, K,
        V]``. A sequence with no token ends as it started.
    """
    return _operator(k, w, u, g_cumsum, initial_state, cu_seqlens, index.offsets, index.first.shape[0], chunk)


def chunk_transition(
    k: torch.Tensor, w: torch.Tensor, g_cumsum: torch.Tensor | None, cu_seqlens: torch.Tensor, chunk: int
) -> torch.Tensor:
    """What the chunks of each sequence do to a state: the product of ``exp(G_last) I - k^T diag(exp(G_last - G)) w``.

    With ranks that hold consecutive parts of a sequence, the final state of a rank that started from a state it did not
    know is ``S_local + M (S_before - S_assumed)``. Arguments are those of :func:`ascend_kernels.chunk_delta_h`.

    Returns:
        fp32 ``[sequences, value heads, K, K]``; the identity for a sequence with no token.
    """
    return _transition_operator(k, w, g_cumsum, cu_seqlens, chunk)
