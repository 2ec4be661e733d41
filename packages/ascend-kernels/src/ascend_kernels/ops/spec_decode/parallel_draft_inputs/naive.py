"""The definition in torch."""

from __future__ import annotations

import torch


def parallel_draft_inputs_naive(
    next_tokens: torch.Tensor,
    positions: torch.Tensor,
    query_start_loc: torch.Tensor,
    rejected: torch.Tensor | None,
    block_table: torch.Tensor,
    block_size: int,
    queries: int,
    mask_token: int,
    max_length: int,
    pad: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.parallel_draft_inputs`."""
    requests = next_tokens.shape[0]
    ids = torch.full((requests, queries), mask_token, dtype=torch.int32, device=next_tokens.device)
    ids[:, 0] = next_tokens
    last = query_start_loc[1:].long() - 1
    if rejected is not None:
        last = last - rejected
    wanted = positions[last][:, None] + torch.arange(1, queries + 1, device=positions.device)
    places = wanted.clamp(max=max_length - 1)
    blocks = block_table[:requests].long().gather(1, places // block_size)
    slots = torch.where(wanted < max_length, blocks * block_size + places % block_size, pad).to(torch.int32)
    return ids.flatten(), places.flatten(), slots.flatten()
