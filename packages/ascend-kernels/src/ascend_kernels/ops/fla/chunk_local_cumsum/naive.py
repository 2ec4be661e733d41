"""The definition in torch."""

from __future__ import annotations

import torch


def chunk_local_cumsum_naive(
    values: torch.Tensor, first: torch.Tensor, end: torch.Tensor, chunk: int, reverse: bool, scale: float
) -> torch.Tensor:
    """See :func:`ascend_kernels.chunk_local_cumsum`."""
    sums = torch.empty_like(values, dtype=torch.float32)
    for begin, stop in zip(first.tolist(), end.tolist(), strict=True):
        tile = values[begin:stop].float()
        sums[begin:stop] = (tile.flip(0).cumsum(0).flip(0) if reverse else tile.cumsum(0)) * scale
    return sums
