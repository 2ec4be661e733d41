"""The maps of a layer on a device, which captured graphs go on to use when a new placement is switched on."""

from __future__ import annotations

import torch

from ascend_moe.eplb.arrays import Integers
from ascend_moe.eplb.routing import routing_table

_ROWS = 1024


class ReplicaMap:
    """Which physical expert each token uses for a logical one, and how many tokens the physical experts got.

    All tensors keep their address and shape: :meth:`switch` writes in place.
    """

    def __init__(self, placement: Integers, experts: int, rank: int, device: torch.device | str) -> None:
        """Start with a placement.

        Args:
            placement: [ranks, slots] of the layer, the logical expert in each slot.
            experts: logical experts.
            rank: this one; ranks start at different replicas.
            device: where tokens are routed.
        """
        self._rank, self._experts, self._shape = rank, experts, placement.shape
        self._table = torch.empty(_ROWS, experts, dtype=torch.int32, device=device)
        self._counts = torch.zeros(placement.size, dtype=torch.int64, device=device)
        self.switch(placement)

    def switch(self, placement: Integers) -> None:
        """Use a new placement from the next step on; counting starts anew.

        Raises:
            ValueError: another shape, which captured graphs could not use.
        """
        if placement.shape != self._shape:
            raise ValueError(f"the placement has the shape {placement.shape}, the present one {self._shape}")
        table = routing_table(placement[None], self._experts, self._rank, _ROWS)[0]
        self._table.copy_(torch.from_numpy(table))
        self._counts.zero_()

    def to_physical(self, experts: torch.Tensor) -> torch.Tensor:
        """Physical experts [tokens, top_k] int32 for logical ones; replicas take turns by token."""
        rows = torch.arange(len(experts), device=experts.device) % _ROWS
        return self._table[rows.unsqueeze(1), experts.long()]

    def record(self, physical: torch.Tensor) -> None:
        """Count the choices [tokens, top_k] of physical experts; may be part of a captured graph."""
        flat = physical.flatten().long()
        self._counts.index_add_(0, flat, torch.ones_like(flat))

    def counts(self) -> Integers:
        """Choices of every slot since the last switch or call, [ranks, slots]; waits for the device."""
        counted = self._counts.cpu().numpy().reshape(self._shape)
        self._counts.zero_()
        return counted
