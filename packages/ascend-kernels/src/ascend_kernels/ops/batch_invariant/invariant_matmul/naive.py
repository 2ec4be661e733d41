"""The definition in torch."""

from __future__ import annotations

import torch


def invariant_matmul_naive(x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """See :func:`ascend_kernels.invariant_matmul`: one row at a time, so that no row can see another."""
    result = torch.zeros(x.shape[0], x.shape[1], y.shape[2], dtype=torch.float32, device=x.device)
    for batch in range(x.shape[0]):
        matrix = y[batch].float().contiguous()
        for row in range(x.shape[1]):
            result[batch, row] = x[batch, row : row + 1].float() @ matrix
    return (result if bias is None else result + bias.float()).to(x.dtype)
