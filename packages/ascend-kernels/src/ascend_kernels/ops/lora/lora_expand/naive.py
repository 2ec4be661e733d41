"""The definition in torch."""

from __future__ import annotations

import torch


def lora_expand_naive(y: torch.Tensor, h: torch.Tensor, b: torch.Tensor, adapters: torch.Tensor, offset: int) -> None:
    """See :func:`ascend_kernels.lora_expand`."""
    for token, adapter in enumerate(adapters.tolist()):
        if adapter >= 0:
            part = y[token, offset : offset + b.shape[1]]
            part.copy_(part.float() + b[adapter].float() @ h[token].float())
