"""The definition in torch."""

from __future__ import annotations

import torch


def swiglustep_naive(x: torch.Tensor, limit: float) -> torch.Tensor:
    """See :func:`ascend_kernels.swiglustep`."""
    gate, up = x.float().chunk(2, -1)
    return (torch.nn.functional.silu(gate).clamp(max=limit) * up.clamp(-limit, limit)).to(x.dtype)
