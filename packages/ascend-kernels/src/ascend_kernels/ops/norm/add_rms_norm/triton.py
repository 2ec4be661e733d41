"""The Triton launcher; the kernel is the family's."""

from __future__ import annotations

import torch

from ascend_kernels.ops.norm.row_norm.triton import as_groups, normalise_groups


def add_rms_norm_triton(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, gemma: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.add_rms_norm`."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    total = torch.empty_like(y)
    if x.numel() == 0:
        return y, total
    groups, residual_groups = as_groups(x), as_groups(residual)
    if groups.shape != residual_groups.shape:  # one of the two has strides that keep a dimension
        groups, residual_groups = as_groups(x.contiguous()), as_groups(residual.contiguous())
    normalise_groups(
        groups,
        weight,
        eps,
        y.view(groups.shape),
        residual=residual_groups,
        total=total,
        weight_offset=1.0 if gemma else 0.0,
    )
    return y, total
