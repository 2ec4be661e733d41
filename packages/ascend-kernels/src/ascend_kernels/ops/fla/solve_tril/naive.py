"""The definition in torch."""

from __future__ import annotations

import torch


def solve_tril_naive(matrix: torch.Tensor, first: torch.Tensor, end: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """See :func:`ascend_kernels.solve_tril`."""
    inverse = torch.zeros_like(matrix, dtype=dtype)
    wide = torch.float64 if matrix.dtype == torch.float64 else torch.float32
    for begin, stop in zip(first.tolist(), end.tolist(), strict=True):
        length = stop - begin
        block = matrix[begin:stop, :, :length].to(wide).transpose(0, 1).tril(-1)
        identity = torch.eye(length, dtype=wide, device=matrix.device)
        solved = torch.linalg.solve_triangular(block + identity, identity.expand_as(block), upper=False)
        inverse[begin:stop, :, :length] = solved.transpose(0, 1).to(dtype)
    return inverse
