"""The definition in torch."""

from __future__ import annotations

import math

import torch

PLACEHOLDER = -1


def probability_of(probs: torch.Tensor, row: int, token: int, indices: torch.Tensor | None) -> float:
    """A token's probability in a row of all tokens, or of candidates."""
    if indices is None:
        return float(probs[row, token])
    return float(probs[row][indices[row] == token].sum())


def rejection_sample_naive(
    draft_token_ids: torch.Tensor,
    cu_num_drafts: torch.Tensor,
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor | None,
    recovered: torch.Tensor,
    bonus: torch.Tensor,
    uniform: torch.Tensor,
    temperature: torch.Tensor,
    target_indices: torch.Tensor | None,
    entropy: torch.Tensor | None,
    max_drafts: int,
    block: bool,
    posterior_threshold: float,
    posterior_alpha: float,
) -> torch.Tensor:
    """See :func:`ascend_kernels.rejection_sample`."""
    emitted = torch.full((len(temperature), max_drafts + 1), PLACEHOLDER, dtype=torch.int32)
    start = 0
    for request, end in enumerate(cu_num_drafts.tolist()):
        accepted, together, drawn = 0, 1.0, 1.0
        for index, row in enumerate(range(start, end)):
            token = int(draft_token_ids[row])
            if temperature[request] == 0:
                if token != int(recovered[row]):
                    break
                accepted += 1
                continue
            bar = float(uniform[row])
            if entropy is not None:
                bar *= min(math.exp(-posterior_alpha * float(entropy[row])), posterior_threshold)
            ratio = 0.0
            if token >= 0:
                q = 1.0 if draft_probs is None else float(draft_probs[row, token])
                ratio = probability_of(target_probs, row, token, target_indices) / q if q > 0 else 0.0
            if block:
                together, drawn = min(together * ratio, 1.0), drawn * bar
                accepted = index + 1 if together > 0 and together >= drawn else accepted
            elif ratio > 0 and ratio >= bar:
                accepted += 1
            else:
                break
        emitted[request, :accepted] = draft_token_ids[start : start + accepted]
        emitted[request, accepted] = recovered[start + accepted] if start + accepted < end else bonus[request]
        start = end
    return emitted.to(draft_token_ids.device)
