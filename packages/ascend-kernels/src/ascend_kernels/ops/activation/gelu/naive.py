"""The definition in torch."""

from __future__ import annotations

import torch


def gelu_naive(x: torch.Tensor, approximate: str) -> torch.Tensor:
    """See :func:`ascend_kernels.gelu`."""
    values = x.float()
    if approximate == "quick":
        return (values * torch.sigmoid(1.702 * values)).to(x.dtype)
    return torch.nn.functional.gelu(values, approximate=approximate).to(x.dtype)
