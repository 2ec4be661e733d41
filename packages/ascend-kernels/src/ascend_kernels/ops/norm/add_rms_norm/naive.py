"""The definition in torch."""

from __future__ import annotations

import torch

from ascend_kernels.ops.norm.rms_norm.naive import rms_norm_naive


def add_rms_norm_naive(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, gemma: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.add_rms_norm`."""
    total = x.float() + residual.float()
    return rms_norm_naive(total, weight, eps, gemma).to(x.dtype), total.to(x.dtype)
