"""The definition in torch."""

from __future__ import annotations

import torch


def expert_positions_naive(
    ids: torch.Tensor, first: int, experts: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.expert_positions`."""
    own = ids.flatten().long() - first
    here = (own >= 0) & (own < experts)
    counts = torch.bincount(own[here], minlength=experts)
    order = torch.where(here, own, experts).sort(stable=True).indices
    positions = torch.empty_like(own)
    positions[order] = torch.arange(own.numel(), device=ids.device)
    positions = torch.where(here, positions, -1).view(ids.shape)
    offsets = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    return positions.int(), counts.int(), offsets.int()
