"""The definitions in torch."""

from __future__ import annotations

from itertools import pairwise

import torch


def _fades(
    g_cumsum: torch.Tensor | None, begin: int, stop: int, keys: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What each key counts at the end of a chunk [tokens, heads, 1], and the decay of the chunk [heads, K or 1]."""
    if g_cumsum is None:
        return keys.new_ones(1, 1, 1), keys.new_ones(1, 1)
    last = g_cumsum[stop - 1].to(keys.dtype)
    if g_cumsum.dim() == 3:
        return keys.new_ones(1, 1, 1), last.exp()
    return (last - g_cumsum[begin:stop]).exp()[:, :, None], last.exp()[:, None]


def chunk_delta_h_naive(
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
    """See :func:`ascend_kernels.chunk_delta_h`."""
    _, heads, value_dim = u.shape
    keys = k.float().repeat_interleave(heads // k.shape[1], 1)
    states = k.new_zeros(entries, heads, k.shape[2], value_dim)
    deltas = torch.empty_like(u)
    final = keys.new_zeros(cu_seqlens.shape[0] - 1, heads, k.shape[2], value_dim)
    if initial_state is not None:
        final.copy_(initial_state)
    for sequence, (start, end) in enumerate(pairwise(cu_seqlens.tolist())):
        state = final[sequence]
        for number, begin in enumerate(range(start, end, chunk)):
            stop = min(begin + chunk, end)
            states[int(offsets[sequence]) + number] = state.to(k.dtype)
            delta = u[begin:stop].float() - torch.einsum("thk,hkv->thv", w[begin:stop].float(), state)
            deltas[begin:stop] = delta.to(u.dtype)
            fade, decay = _fades(g_cumsum, begin, stop, keys)
            state = state * decay[:, :, None] + torch.einsum("thk,thv->hkv", keys[begin:stop], delta * fade)
        final[sequence] = state
    return states, deltas, final


def chunk_transition_naive(
    k: torch.Tensor, w: torch.Tensor, g_cumsum: torch.Tensor | None, cu_seqlens: torch.Tensor, chunk: int
) -> torch.Tensor:
    """See :func:`ascend_kernels.chunk_transition`."""
    heads = w.shape[1]
    keys = k.float().repeat_interleave(heads // k.shape[1], 1)
    identity = torch.eye(k.shape[2], device=k.device)
    product = identity.expand(cu_seqlens.shape[0] - 1, heads, -1, -1).clone()
    for sequence, (start, end) in enumerate(pairwise(cu_seqlens.tolist())):
        for begin in range(start, end, chunk):
            stop = min(begin + chunk, end)
            fade, decay = _fades(g_cumsum, begin, stop, keys)
            removed = torch.einsum("thk,thl->hkl", keys[begin:stop] * fade, w[begin:stop].float())
            product[sequence] = (identity * decay[:, :, None] - removed) @ product[sequence]
    return product
