"""The definition in torch."""

from __future__ import annotations

import torch


def scaled_dot_kkt_naive(
    k: torch.Tensor,
    beta: torch.Tensor,
    g_cumsum: torch.Tensor | None,
    first: torch.Tensor,
    end: torch.Tensor,
    chunk: int,
) -> torch.Tensor:
    """See :func:`ascend_kernels.scaled_dot_kkt`."""
    tokens, heads = beta.shape
    result = k.new_zeros(tokens, heads, chunk, dtype=torch.float32)
    keys = k.float().repeat_interleave(heads // k.shape[1], 1)
    for begin, stop in zip(first.tolist(), end.tolist(), strict=True):
        tile = keys[begin:stop].transpose(0, 1)
        products = tile @ tile.transpose(1, 2) * beta[begin:stop].float().t()[:, :, None]
        if g_cumsum is not None:
            decay = g_cumsum[begin:stop].t()
            products = products * (decay[:, :, None] - decay[:, None, :]).tril().exp()
        result[begin:stop, :, : stop - begin] = products.tril(-1).transpose(0, 1)
    return result
