"""The gated delta rule token by token, from given states or in slots of a state cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.packed import check_heads, fake_outputs_and_states, packed
from ascend_kernels.ops.fla.recurrent_delta_rule.calls import calls, update_calls
from ascend_kernels.ops.fla.recurrent_delta_rule.naive import (
    recurrent_delta_rule_naive,
    recurrent_delta_rule_update_naive,
)


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.recurrent_delta_rule.triton import recurrent_delta_rule_triton

    return recurrent_delta_rule_triton


def _update_triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.recurrent_delta_rule.triton import recurrent_delta_rule_update_triton

    return recurrent_delta_rule_update_triton


def _update_fake(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_: object) -> torch.Tensor:
    return v.new_empty(v.shape)


_operator = register(
    "recurrent_delta_rule(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor? initial_state, "
    "Tensor cu_seqlens, float scale, bool normalise) -> (Tensor, Tensor)",
    naive=recurrent_delta_rule_naive,
    triton=_triton,
    calls=calls,
    fake=fake_outputs_and_states,
)
_update_operator = register(
    "recurrent_delta_rule_update(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor(a!) state, "
    "Tensor cu_seqlens, Tensor state_indices, Tensor? num_accepted, float scale, bool normalise) -> Tensor",
    naive=recurrent_delta_rule_update_naive,
    triton=_update_triton,
    calls=update_calls,
    fake=_update_fake,
)


def recurrent_delta_rule(
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
    """The gated delta rule token by token (arXiv 2412.06464; per key channel: Kimi Delta Attention, arXiv 2510.26692).

    Per token, with ``S`` the state ``[K, V]`` of a head: ``S <- exp(g) S``, ``S <- S + k (beta (v - S^T k))^T``,
    ``o = scale S^T q``.

    Args:
        q: fp16, bf16 or fp32 ``[batch, tokens, key heads, K]``; tokens may be strided. K is at most 256.
        k: like ``q``, normalised by the caller unless ``use_qk_l2norm``.
        v: ``[batch, tokens, value heads, V]``, value heads a multiple of the key heads.
        g: ``[batch, tokens, value heads]``, or ``[batch, tokens, value heads, K]`` for a decay per key channel:
            logarithms of the decays, not above 0.
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
    check_heads("recurrent_delta_rule", q, k, v)
    cu_seqlens, tensors = packed("recurrent_delta_rule", cu_seqlens, q, k, v, g, beta)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    output, final = _operator(*tensors, initial_state, cu_seqlens, scale, use_qk_l2norm)
    return output.view(v.shape), final


def recurrent_delta_rule_update(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    state_indices: torch.Tensor,
    num_accepted: torch.Tensor | None = None,
    scale: float | None = None,
    use_qk_l2norm: bool = False,
) -> torch.Tensor:
    """The same recurrence on slots of a state cache, in place: decoding, and verification of drafts.

    Args:
        q: ``[tokens, key heads, K]``, the tokens of all sequences packed.
        k: like ``q``.
        v: ``[tokens, value heads, V]``.
        g: ``[tokens, value heads]`` or ``[tokens, value heads, K]``.
        beta: ``[tokens, value heads]``.
        state: fp16, bf16 or fp32 ``[slots, value heads, K, V]``, every slot contiguous.
        cu_seqlens: ``[sequences + 1]``.
        state_indices: int32 or int64. ``[sequences]``: each sequence continues from its slot and leaves its state
            there. ``[sequences, most tokens]``: the state after token ``t`` of a sequence goes to slot
            ``state_indices[n, t]``. A slot of -1 is never read or written; a sequence that would start there starts
            from zeros.
        num_accepted: ``[sequences]``, with one slot per token: how many tokens of the last step were accepted; the
            state after the last of them is continued. None continues from the first slot.
        scale: of the outputs; default ``K ** -0.5``.
        use_qk_l2norm: as in :func:`ascend_kernels.recurrent_delta_rule`.

    Returns:
        ``[tokens, value heads, V]`` in the dtype of ``v``.

    Raises:
        ValueError: shapes that do not fit together, or slots that are not contiguous.
    """
    check_heads("recurrent_delta_rule_update", q, k, v)
    if not state[:1].is_contiguous():
        raise ValueError(
            f"recurrent_delta_rule_update: each slot of the state {tuple(state.shape)} must be contiguous, but its "
            f"strides are {state.stride()}"
        )
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return _update_operator(q, k, v, g, beta, state, cu_seqlens, state_indices, num_accepted, scale, use_qk_l2norm)
