"""The definition in torch."""

from __future__ import annotations

import torch


def moe_unpermute_naive(y: torch.Tensor, positions: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    """See :func:`ascend_kernels.moe_unpermute`."""
    total = y.new_zeros(positions.shape[0], y.shape[1], dtype=torch.float32)
    for index in range(positions.shape[1]):
        token = torch.nonzero(positions[:, index] >= 0)[:, 0]
        rows = y[positions[token, index].long()].float()
        total[token] += rows if weights is None else rows * weights[token, index].float()[:, None]
    return total.to(y.dtype)
