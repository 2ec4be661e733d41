"""The definition in torch."""

from __future__ import annotations

import torch


def swiglu_naive(x: torch.Tensor, alpha: float, bias: float, limit: float, interleaved: bool) -> torch.Tensor:
    """See :func:`ascend_kernels.swiglu`."""
    gate, up = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    gate, up = gate.float(), up.float()
    if limit > 0:
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return (gate * torch.sigmoid(alpha * gate) * (up + bias)).to(x.dtype)
