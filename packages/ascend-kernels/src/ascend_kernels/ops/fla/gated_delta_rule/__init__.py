"""The gated delta rule over whole sequences, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.gated_delta_rule.calls import calls
from ascend_kernels.ops.fla.gated_delta_rule.naive import gated_delta_rule_naive
from ascend_kernels.ops.fla.packed import check_heads, fake_outputs_and_states, packed


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.gated_delta_rule.triton import gated_delta_rule_triton

    return gated_delta_rule_triton


_operator = register(
    "gated_delta_rule(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor? initial_state, Tensor cu_seqlens, "
    "float scale, bool normalise) -> (Tensor, Tensor)",
    naive=gated_delta_rule_naive,
    triton=_triton,
    calls=calls,
    fake=fake_outputs_and_states,
)


def gated_delta_rule(
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
    """Prefill of gated linear attention with the delta rule, in chunks of 64 tokens (arXiv 2412.06464).

    Per token, with ``S`` the state ``[K, V]`` of a head: ``S <- exp(g) S``, ``S <- S + k (beta (v - S^T k))^T``,
    ``o = scale S^T q``.

    Args:
        q: fp16, bf16 or fp32 ``[batch, tokens, key heads, K]``; tokens may be strided. K is at most 256.
        k: like ``q``, normalised by the caller unless ``use_qk_l2norm``.
        v: ``[batch, tokens, value heads, V]``, value heads a multiple of the key heads.
        g: ``[batch, tokens, value heads]``, logarithms of the decays, not above 0.
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
    check_heads("gated_delta_rule", q, k, v)
    cu_seqlens, tensors = packed("gated_delta_rule", cu_seqlens, q, k, v, g, beta)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    output, final = _operator(*tensors, initial_state, cu_seqlens, scale, use_qk_l2norm)
    return output.view(v.shape), final
