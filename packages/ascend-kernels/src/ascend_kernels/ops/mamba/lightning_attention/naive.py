"""The definitions in torch: the state of one sequence, token by token."""

from __future__ import annotations

from itertools import pairwise

import torch


def _walk(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, fade: torch.Tensor, state: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs and final state of one sequence."""
    outputs = torch.empty_like(v, dtype=state.dtype)
    for token in range(q.shape[0]):
        state = state * fade + k[token].to(state.dtype)[:, :, None] * v[token].to(state.dtype)[:, None]
        outputs[token] = torch.einsum("hk,hkv->hv", q[token].to(state.dtype), state)
    return outputs, state


def _prepare(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, slopes: torch.Tensor) -> tuple[torch.Tensor, ...]:
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    group = v.shape[1] // q.shape[1]
    fade = torch.exp(-slopes.to(wide))[:, None, None]
    return q.repeat_interleave(group, 1), k.repeat_interleave(group, 1), fade


def lightning_attention_naive(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    slopes: torch.Tensor,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.lightning_attention`."""
    query, key, fade = _prepare(q, k, v, slopes)
    output = v.new_empty(v.shape)
    final = fade.new_zeros(cu_seqlens.shape[0] - 1, v.shape[1], q.shape[2], v.shape[2])
    if initial_state is not None:
        final.copy_(initial_state)
    for n, (begin, end) in enumerate(pairwise(cu_seqlens.tolist())):
        result, final[n] = _walk(query[begin:end], key[begin:end], v[begin:end], fade, final[n].clone())
        output[begin:end] = (scale * result).to(output.dtype)
    return output, final


def lightning_attention_update_naive(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    slopes: torch.Tensor,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    state_indices: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """See :func:`ascend_kernels.lightning_attention_update`."""
    query, key, fade = _prepare(q, k, v, slopes)
    output = v.new_empty(v.shape)
    for n, (begin, end) in enumerate(pairwise(cu_seqlens.tolist())):
        slot = int(state_indices[n])
        start = (torch.zeros_like(state[0]) if slot < 0 else state[slot]).to(fade.dtype)
        result, final = _walk(query[begin:end], key[begin:end], v[begin:end], fade, start)
        output[begin:end] = (scale * result).to(output.dtype)
        if slot >= 0:
            state[slot] = final.to(state.dtype)
    return output
