"""The definition in torch."""

from __future__ import annotations

import torch


def dynamic_quant_naive(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.dynamic_quant`."""
    values = x.float()
    scale = values.abs().amax(-1) / 127 if x.shape[-1] else values.new_zeros(x.shape[:-1])
    divisor = torch.where(scale > 0, scale, 1.0)
    return torch.round(values / divisor[..., None]).clamp(-127, 127).to(torch.int8), scale
