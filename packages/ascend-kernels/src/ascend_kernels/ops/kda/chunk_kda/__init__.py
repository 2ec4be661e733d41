"""Kimi Delta Attention over whole sequences, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.packed import check_heads, fake_outputs_and_states, packed
from ascend_kernels.ops.kda.chunk_kda.calls import calls
from ascend_kernels.ops.kda.chunk_kda.naive import chunk_kda_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.kda.chunk_kda.triton import chunk_kda_triton

    return chunk_kda_triton


_operator = register(
    "chunk_kda(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor? initial_state, Tensor cu_seqlens, "
    "float scale, bool normalise) -> (Tensor, Tensor)",
    naive=chunk_kda_naive,
    triton=_triton,
    calls=calls,
    fake=fake_outputs_and_states,
)


def chunk_kda(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    scale: float | None = None,
    initial_state: torch.Tensor | None = None,
    cu_seqlens: torch.Tensor | None = None,
    use_qk_l2norm: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Prefill of Kimi Delta Attention, in chunks of 64 tokens (Kimi Linear, arXiv 2510.26692).

    The gated delta rule with a decay for every key channel. Per token, with ``S`` the state ``[K, V]`` of a head:
    ``S <- diag(exp(g)) S``, ``S <- S + k (beta (v - S^T k))^T``, ``o = scale S^T q``.

    Args:
        q: fp16, bf16 or fp32 ``[batch, tokens, heads, K]``; tokens may be strided. K is at most 256.
        k: like ``q``, normalised by the caller unless ``use_qk_l2norm``.
        v: ``[batch, tokens, value heads, V]``.
        g: ``[batch, tokens, heads, K]``, logarithms of the decays, not above 0.
        beta: ``[batch, tokens, value heads]``, strength of the delta.
        scale: of the outputs; default ``K ** -0.5``.
        initial_state: ``[sequences, value heads, K, V]``; None for zeros.
        cu_seqlens: int32 or int64 ``[sequences + 1]`` with a batch of 1: the sequences lie packed, some may be empty.
        use_qk_l2norm: divide queries and keys by ``sqrt(sum of squares + 1e-6)`` first.

    Returns:
        Outputs ``[batch, tokens, value heads, V]`` in the dtype of ``v`` and final states fp32
        ``[sequences, value heads, K, V]``; a sequence with no token ends as it started.

    Raises:
        ValueError: shapes that do not fit together.
    """
    check_heads("chunk_kda", q, k, v)
    cu_seqlens, tensors = packed("chunk_kda", cu_seqlens, q, k, v, g, beta)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    output, final = _operator(*tensors, initial_state, cu_seqlens, scale, use_qk_l2norm)
    return output.view(v.shape), final
