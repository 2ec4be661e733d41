"""The definition in torch."""

from __future__ import annotations

import torch

from ascend_kernels.ops.sampling.noise.naive import exponential


def recovered_tokens_naive(
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor | None,
    draft_token_ids: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    positions: torch.Tensor,
    request_of_row: torch.Tensor,
    target_indices: torch.Tensor | None,
) -> torch.Tensor:
    """See :func:`ascend_kernels.recovered_tokens`."""
    rows, columns = target_probs.shape
    drafts = draft_token_ids.long()[:, None]
    tokens = torch.arange(columns, device=target_probs.device).expand(rows, columns)
    if target_indices is not None:
        tokens = target_indices.long()
    proposed = (tokens == drafts).float() * target_probs if draft_probs is None else draft_probs.gather(1, tokens)
    residual = torch.where(drafts < 0, target_probs, (target_probs - proposed).clamp(min=0))
    noise = exponential(seeds[request_of_row][:, None], positions[:, None], tokens)
    greedy = (temperature[request_of_row] == 0)[:, None]
    scores = torch.where(greedy, target_probs, residual / noise)
    best = torch.where(scores == scores.amax(1, keepdim=True), tokens, torch.iinfo(torch.int64).max)
    return best.amin(1).to(torch.int32)
