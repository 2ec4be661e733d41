"""The definition in torch."""

from __future__ import annotations

import torch


def slot_mapping_naive(
    query_start_loc: torch.Tensor,
    positions: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    slots: torch.Tensor,
    pad: int,
) -> None:
    """See :func:`ascend_kernels.slot_mapping`."""
    slots[positions.shape[0] :].fill_(pad)
    requests = query_start_loc.shape[0] - 1
    if positions.shape[0] == 0:
        return
    if requests == 0:
        slots.fill_(pad)
        return
    tokens = torch.arange(positions.shape[0], dtype=query_start_loc.dtype, device=positions.device)
    owner = torch.bucketize(tokens, query_start_loc[1:], right=True)
    owned = owner < requests
    owner = owner.clamp(max=requests - 1)
    position = torch.where(owned, positions, 0)
    pages = block_table[owner, position // block_size].to(torch.int64)
    slots[: positions.shape[0]] = torch.where(owned, pages * block_size + position % block_size, pad).to(slots.dtype)
