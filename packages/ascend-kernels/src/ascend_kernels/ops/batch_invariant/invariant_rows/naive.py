"""The definition in torch."""

from __future__ import annotations

import torch


def invariant_rows_naive(x: torch.Tensor, weight: torch.Tensor | None, kind: str, eps: float) -> torch.Tensor:
    """See :mod:`ascend_kernels.ops.batch_invariant.invariant_rows`: one row at a time."""
    results = [_of_row(row.float().contiguous(), weight, kind, eps) for row in x.unbind(0)]
    if not results:
        return x.new_empty(0) if kind == "mean" else torch.empty_like(x, memory_format=torch.contiguous_format)
    return torch.stack(results).to(x.dtype)


def _of_row(row: torch.Tensor, weight: torch.Tensor | None, kind: str, eps: float) -> torch.Tensor:
    if kind == "mean":
        return row.mean()
    if kind == "softmax":
        return row.softmax(0)
    if kind == "log_softmax":
        return row.log_softmax(0)
    scaled = row * torch.rsqrt(row.square().mean() + eps)
    return scaled if weight is None else scaled * weight.float()
