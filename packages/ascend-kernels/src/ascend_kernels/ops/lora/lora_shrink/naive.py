"""The definition in torch."""

from __future__ import annotations

import torch


def lora_shrink_naive(x: torch.Tensor, a: torch.Tensor, adapters: torch.Tensor, scale: float) -> torch.Tensor:
    """See :func:`ascend_kernels.lora_shrink`."""
    y = torch.zeros(x.shape[0], a.shape[1], dtype=torch.float32, device=x.device)
    for token, adapter in enumerate(adapters.tolist()):
        if adapter >= 0:
            y[token] = scale * (a[adapter].float() @ x[token].float())
    return y
