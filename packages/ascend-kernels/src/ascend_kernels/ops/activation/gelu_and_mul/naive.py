"""The definition in torch."""

from __future__ import annotations

import torch


def gelu_and_mul_naive(x: torch.Tensor, approximate: str) -> torch.Tensor:
    """See :func:`ascend_kernels.gelu_and_mul`."""
    gate, up = x.float().chunk(2, -1)
    if approximate == "quick":
        return (gate * torch.sigmoid(1.702 * gate) * up).to(x.dtype)
    return (torch.nn.functional.gelu(gate, approximate=approximate) * up).to(x.dtype)
