"""The definition in torch."""

from __future__ import annotations

import torch


def merge_attention_naive(outputs: torch.Tensor, lses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.merge_attention`."""
    total = torch.logsumexp(lses.float(), 0)
    # A row that no part has seen anything for weighs nothing, rather than -inf - -inf.
    weights = torch.exp(lses.float() - torch.where(total == float("-inf"), 0.0, total))[..., None]
    parts = torch.where(weights > 0, outputs.float() * weights, 0.0)
    return parts.sum(0).to(outputs.dtype), total
