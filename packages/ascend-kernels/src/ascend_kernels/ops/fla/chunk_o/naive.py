"""The definition in torch."""

from __future__ import annotations

import torch


def chunk_o_naive(
    q: torch.Tensor,
    k: torch.Tensor,
    deltas: torch.Tensor,
    states: torch.Tensor,
    g_cumsum: torch.Tensor | None,
    first: torch.Tensor,
    end: torch.Tensor,
    scale: float,
    chunk: int,
) -> torch.Tensor:
    """See :func:`ascend_kernels.chunk_o`."""
    heads = deltas.shape[1]
    queries, keys = (x.float().repeat_interleave(heads // x.shape[1], 1) for x in (q, k))
    output = torch.empty_like(deltas)
    for number, (begin, stop) in enumerate(zip(first.tolist(), end.tolist(), strict=True)):
        query, delta = queries[begin:stop], deltas[begin:stop].float()
        scores = torch.einsum("ihk,jhk->hij", query, keys[begin:stop])
        from_state = torch.einsum("ihk,hkv->ihv", query, states[number].float())
        if g_cumsum is not None:
            decay = g_cumsum[begin:stop].t()
            scores = scores * (decay[:, :, None] - decay[:, None, :]).tril().exp()
            from_state = from_state * decay.t().exp()[:, :, None]
        output[begin:stop] = (scale * (from_state + torch.einsum("hij,jhv->ihv", scores.tril(), delta))).to(
            output.dtype
        )
    return output
