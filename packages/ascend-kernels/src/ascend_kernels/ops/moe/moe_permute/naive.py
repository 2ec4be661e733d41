"""The definition in torch."""

from __future__ import annotations

import torch


def moe_permute_naive(x: torch.Tensor, positions: torch.Tensor, rows: int) -> torch.Tensor:
    """See :func:`ascend_kernels.moe_permute`."""
    result = x.new_empty(rows, x.shape[1])
    token, _ = torch.nonzero(positions >= 0, as_tuple=True)
    result[positions[positions >= 0].long()] = x[token]
    return result
