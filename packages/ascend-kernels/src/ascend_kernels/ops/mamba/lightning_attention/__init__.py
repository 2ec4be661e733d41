"""Lightning attention: linear attention whose state fades at one rate per head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.packed import check_heads, packed
from ascend_kernels.ops.mamba.lightning_attention.calls import calls, update_calls
from ascend_kernels.ops.mamba.lightning_attention.naive import (
    lightning_attention_naive,
    lightning_attention_update_naive,
)


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.mamba.lightning_attention.triton import lightning_attention_triton

    return lightning_attention_triton


def _update_triton() -> Callable[..., Any]:
    from ascend_kernels.ops.mamba.lightning_attention.triton import lightning_attention_update_triton

    return lightning_attention_update_triton


def _fake(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    slopes: torch.Tensor,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    final = v.new_empty(cu_seqlens.shape[0] - 1, v.shape[1], q.shape[2], v.shape[2], dtype=torch.float32)
    return v.new_empty(v.shape), final


def _update_fake(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_: object) -> torch.Tensor:
    return v.new_empty(v.shape)


_operator = register(
    "lightning_attention(Tensor q, Tensor k, Tensor v, Tensor slopes, Tensor? initial_state, Tensor cu_seqlens, "
    "float scale) -> (Tensor, Tensor)",
    naive=lightning_attention_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)
_update_operator = register(
    "lightning_attention_update(Tensor q, Tensor k, Tensor v, Tensor slopes, Tensor(a!) state, Tensor cu_seqlens, "
    "Tensor state_indices, float scale) -> Tensor",
    naive=lightning_attention_update_naive,
    triton=_update_triton,
    calls=update_calls,
    fake=_update_fake,
)


def lightning_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    slopes: torch.Tensor,
    scale: float = 1.0,
    initial_state: torch.Tensor | None = None,
    cu_seqlens: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``S <- exp(-slope) S + k v^T``, ``o = scale S^T q`` for whole sequences (Qin et al. 2024, arXiv 2401.04658).

    Args:
        q: fp16, bf16 or fp32 ``[batch, tokens, key heads, K]``, K at most 256; tokens may be strided.
        k: like ``q``.
        v: ``[batch, tokens, heads, V]``, heads a multiple of the key heads.
        slopes: fp32 ``[heads]``, not below 0.
        scale: of the outputs.
        initial_state: ``[sequences, heads, K, V]``; None for zeros.
        cu_seqlens: ``[sequences + 1]`` with a batch of 1: the sequences lie packed, some may be empty.

    Returns:
        Outputs ``[batch, tokens, heads, V]`` in the dtype of ``v`` and final states fp32 ``[sequences, heads, K, V]``.

    Raises:
        ValueError: shapes that do not fit together.
    """
    check_heads("lightning_attention", q, k, v)
    cu_seqlens, tensors = packed("lightning_attention", cu_seqlens, q, k, v)
    output, final = _operator(*tensors, slopes, initial_state, cu_seqlens, scale)
    return output.view(v.shape), final


def lightning_attention_update(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    slopes: torch.Tensor,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    state_indices: torch.Tensor,
    scale: float = 1.0,
) -> torch.Tensor:
    """The same for the tokens of a decoding step, on slots of a state cache in place.

    Args:
        q: ``[tokens, key heads, K]``, the tokens of all sequences packed.
        k: like ``q``.
        v: ``[tokens, heads, V]``.
        slopes: fp32 ``[heads]``.
        state: ``[slots, heads, K, V]``, every slot contiguous.
        cu_seqlens: ``[sequences + 1]``.
        state_indices: ``[sequences]``; a slot of -1 is neither read nor written, its sequence starts from zeros.
        scale: of the outputs.

    Returns:
        ``[tokens, heads, V]`` in the dtype of ``v``.

    Raises:
        ValueError: shapes that do not fit together, or slots that are not contiguous.
    """
    check_heads("lightning_attention_update", q, k, v)
    if not state[:1].is_contiguous():
        raise ValueError(
            f"lightning_attention_update: each slot of the state {tuple(state.shape)} must be contiguous, but its "
            f"strides are {state.stride()}"
        )
    return _update_operator(q, k, v, slopes, state, cu_seqlens, state_indices, scale)
