"""The definition in torch."""

from __future__ import annotations

import torch


def token_logprobs_naive(logits: torch.Tensor, token_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.token_logprobs`."""
    values = logits.float()
    vocab = values.shape[1]
    known = (token_ids >= 0) & (token_ids < vocab)
    chosen = values.gather(1, torch.where(known, token_ids, 0).long()).masked_fill(~known, float("-inf"))
    ranks = (values >= chosen[:, :1]).sum(1)
    return chosen - values.logsumexp(1, keepdim=True), ranks.to(torch.int32)
