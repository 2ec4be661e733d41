"""The definition in torch."""

from __future__ import annotations

import torch


def rms_norm_naive(x: torch.Tensor, weight: torch.Tensor | None, eps: float, gemma: bool) -> torch.Tensor:
    """See :func:`ascend_kernels.rms_norm`."""
    values = x.float()
    values = values * torch.rsqrt(values.square().mean(-1, keepdim=True) + eps)
    if weight is not None:
        values = values * (weight.float() + 1 if gemma else weight.float())
    return values.to(x.dtype)
