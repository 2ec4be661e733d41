"""The definition in torch."""

from __future__ import annotations

import torch


def token_counts_naive(tokens: torch.Tensor, vocab: int) -> torch.Tensor:
    """See :func:`ascend_kernels.token_counts`."""
    known = (tokens >= 0) & (tokens < vocab)
    counts = torch.zeros(tokens.shape[0], vocab + 1, dtype=torch.int32, device=tokens.device)
    counts.scatter_add_(1, torch.where(known, tokens, vocab).long(), torch.ones_like(tokens, dtype=torch.int32))
    return counts[:, :vocab].contiguous()
