"""The definition in torch."""

from __future__ import annotations

import torch


def probabilities_naive(logits: torch.Tensor, temperature: torch.Tensor | None, log: bool) -> torch.Tensor:
    """See :func:`ascend_kernels.probabilities`."""
    values = logits.float()
    if temperature is not None:
        values = values / torch.where(temperature == 0, 1.0, temperature)[:, None]
    return values.log_softmax(-1) if log else values.softmax(-1)
