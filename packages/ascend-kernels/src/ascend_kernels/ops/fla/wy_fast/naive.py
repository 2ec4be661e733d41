"""The definition in torch."""

from __future__ import annotations

import torch


def wy_fast_naive(
    k: torch.Tensor,
    v: torch.Tensor,
    beta: torch.Tensor,
    g_cumsum: torch.Tensor,
    inverse: torch.Tensor,
    first: torch.Tensor,
    end: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.wy_fast`."""
    heads = beta.shape[1]
    scaled_keys = k.float().repeat_interleave(heads // k.shape[1], 1) * (beta.float() * g_cumsum.exp())[:, :, None]
    scaled_values = v.float() * beta.float()[:, :, None]
    w, u = torch.empty_like(scaled_keys), torch.empty_like(scaled_values)
    for begin, stop in zip(first.tolist(), end.tolist(), strict=True):
        block = inverse[begin:stop, :, : stop - begin].float()
        w[begin:stop] = torch.einsum("ihj,jhk->ihk", block, scaled_keys[begin:stop])
        u[begin:stop] = torch.einsum("ihj,jhv->ihv", block, scaled_values[begin:stop])
    return w.to(k.dtype), u.to(v.dtype)
