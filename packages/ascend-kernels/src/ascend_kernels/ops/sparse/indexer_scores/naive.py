"""The definition in torch."""

from __future__ import annotations

import torch


def indexer_scores_naive(
    query: torch.Tensor,
    weights: torch.Tensor,
    key_cache: torch.Tensor,
    block_table: torch.Tensor,
    requests: torch.Tensor,
    lengths: torch.Tensor,
    block: int,
) -> torch.Tensor:
    """See :func:`ascend_kernels.indexer_scores`."""
    page = key_cache.shape[1]
    keys = block_table.shape[1] * page
    scores = query.new_full((query.shape[0], keys), float("-inf"), dtype=torch.float32)
    for token, (request, length) in enumerate(zip(requests.tolist(), lengths.tolist())):
        pages = block_table[request, : -(-length // page)].long()
        products = torch.relu(query[token].float() @ key_cache[pages].flatten(0, 1)[:length].float().T)
        scores[token, :length] = weights[token].float() @ products
    return scores.view(len(scores), keys // block, block).amax(-1)
