"""The Triton launcher; the kernel is the family's."""

from __future__ import annotations

import torch

from ascend_kernels.ops.norm.row_norm.triton import as_groups, normalise_groups


def rms_norm_triton(x: torch.Tensor, weight: torch.Tensor | None, eps: float, gemma: bool) -> torch.Tensor:
    """See :func:`ascend_kernels.rms_norm`."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return y
    groups = as_groups(x)
    normalise_groups(groups, weight, eps, y.view(groups.shape), weight_offset=1.0 if gemma else 0.0)
    return y
