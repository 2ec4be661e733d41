"""The definition in torch."""

from __future__ import annotations

import torch


def match(tokens: list[int], min_n: int, max_n: int) -> int | None:
    """Where the text goes on that once followed the longest suffix seen before; of several places the first."""
    for size in range(min(max_n, len(tokens) - 1), min_n - 1, -1):
        suffix = tokens[len(tokens) - size :]
        for start in range(len(tokens) - size):
            if tokens[start : start + size] == suffix:
                return start + size
    return None


def ngram_drafts_naive(
    token_ids: torch.Tensor, lengths: torch.Tensor, min_n: int, max_n: int, drafts: int, max_length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.ngram_drafts`."""
    ids = torch.full((len(lengths), drafts), -1, dtype=torch.int32)
    counts = torch.zeros(len(lengths), dtype=torch.int32)
    for request, length in enumerate(lengths.tolist()):
        tokens = token_ids[request, :length].tolist()
        follows = match(tokens, min_n, max_n)
        if follows is not None:
            found = tokens[follows : follows + max(min(drafts, max_length - length), 0)]
            ids[request, : len(found)] = torch.tensor(found, dtype=torch.int32)
            counts[request] = len(found)
    return ids.to(token_ids.device), counts.to(token_ids.device)
