"""The definition in torch."""

from __future__ import annotations

import torch


def next_tokens_naive(
    sampled: torch.Tensor, backup: torch.Tensor, discarded: torch.Tensor | None, vocab: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.next_tokens`."""
    valid = (sampled >= 0) & (sampled < vocab)
    if discarded is not None:
        valid = valid & ~discarded[:, None]
    places = torch.arange(1, sampled.shape[1] + 1, device=sampled.device)
    last = (valid * places).amax(1, keepdim=True) - 1
    tokens = sampled.gather(1, last.clamp(min=0))[:, 0]
    return torch.where(last[:, 0] >= 0, tokens, backup).to(torch.int32), valid.sum(1).to(torch.int32)
