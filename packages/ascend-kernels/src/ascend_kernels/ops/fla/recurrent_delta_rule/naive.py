"""The definitions in torch: the state of one sequence, token by token."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch

from ascend_kernels.ops.fla.l2norm.naive import l2norm_naive


def _steps(
    inputs: list[torch.Tensor], state: torch.Tensor, scale: float, normalise: bool
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Output ``[heads, V]`` and state ``[heads, K, V]`` after each token of a sequence, in float32 or wider."""
    q, _, v, g, _ = inputs
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    query, key, value, decay, strength = (x.to(wide) for x in inputs)
    if normalise:
        query, key = l2norm_naive(query, 1e-6), l2norm_naive(key, 1e-6)
    group = v.shape[1] // q.shape[1]
    query, key = query.repeat_interleave(group, 1), key.repeat_interleave(group, 1)
    factor = decay.exp() if g.dim() == 3 else decay.exp()[:, :, None]
    state = state.to(wide)
    for token in range(q.shape[0]):
        state = state * factor[token][:, :, None]
        delta = strength[token][:, None] * (value[token] - torch.einsum("hkv,hk->hv", state, key[token]))
        state = state + key[token][:, :, None] * delta[:, None, :]
        yield scale * torch.einsum("hkv,hk->hv", state, query[token]), state


def recurrent_delta_rule_naive(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    scale: float,
    normalise: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.recurrent_delta_rule`."""
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    output = v.new_empty(v.shape)
    final = v.new_zeros(cu_seqlens.shape[0] - 1, v.shape[1], q.shape[2], v.shape[2], dtype=wide)
    if initial_state is not None:
        final.copy_(initial_state)
    for n, (begin, end) in enumerate(pairwise(cu_seqlens.tolist())):
        inputs = [x[begin:end] for x in (q, k, v, g, beta)]
        for offset, (result, state) in enumerate(_steps(inputs, final[n], scale, normalise)):
            output[begin + offset] = result.to(output.dtype)
            last = state
        if end > begin:
            final[n] = last
    return output, final


def recurrent_delta_rule_update_naive(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    state_indices: torch.Tensor,
    num_accepted: torch.Tensor | None,
    scale: float,
    normalise: bool,
) -> torch.Tensor:
    """See :func:`ascend_kernels.recurrent_delta_rule_update`."""
    output = v.new_empty(v.shape)
    per_token = state_indices.dim() == 2
    for n, (begin, end) in enumerate(pairwise(cu_seqlens.tolist())):
        slots = state_indices[n].tolist() if per_token else [int(state_indices[n])] * max(end - begin, 1)
        start = slots[max(int(num_accepted[n]) - 1, 0) if num_accepted is not None else 0]
        current = torch.zeros_like(state[0]) if start < 0 else state[start].clone()
        inputs = [x[begin:end] for x in (q, k, v, g, beta)]
        for offset, (result, after) in enumerate(_steps(inputs, current, scale, normalise)):
            output[begin + offset] = result.to(output.dtype)
            if slots[offset] >= 0:
                state[slots[offset]] = after.to(state.dtype)
    return output
