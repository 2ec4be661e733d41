# SPDX-License-Identifier: Apache-2.0
"""Keys and values stored as int8 beside floating-point queries: ``x = (stored + offset) * scale``."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ascend_sim.references import limits

PER_CHANNEL, PER_TOKEN, PER_HEAD, PER_TOKEN_HEAD = range(4)
"""Values of key_antiquant_mode and value_antiquant_mode that are simulated; a per-tensor scale is per-channel too."""


@dataclass(frozen=True, slots=True)
class Scales:
    """How one of key and value was quantised.

    Args:
        mode: What a scale covers.
        scale: Per channel [.., N, D] in any of the documented shapes, or one element; per token [B, S]; per head [N];
            per token and head [B, N, S].
        offset: Shaped like ``scale``; 0 if None.
    """

    mode: int
    scale: Tensor
    offset: Tensor | None

    def restore(self, stored: Tensor, members: Tensor) -> Tensor:
        """Floating-point form of ``stored`` [requests, tokens, N, D] of the requests numbered ``members``."""
        values = stored.float()
        if self.offset is not None:
            values = values + self._broadcast(self.offset.float(), stored, members)
        return values * self._broadcast(self.scale.float(), stored, members)

    def _broadcast(self, scale: Tensor, stored: Tensor, members: Tensor) -> Tensor:
        tokens, heads, size = stored.shape[1:]
        if scale.numel() == 1:
            return scale.reshape(())
        if self.mode == PER_CHANNEL:
            return scale.reshape(heads, size)
        if self.mode == PER_HEAD:
            return scale.reshape(heads, 1)
        if self.mode == PER_TOKEN:
            rows = scale.reshape(-1, scale.shape[-1])[members, :tokens]
            return rows[..., None, None]
        return scale[members, :, :tokens].transpose(1, 2).unsqueeze(-1)


@dataclass(frozen=True, slots=True)
class Antiquant:
    """Scales of key and value; called with both as stored."""

    key: Scales
    value: Scales

    def __call__(self, key: Tensor, value: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
        return self.key.restore(key, members), self.value.restore(value, members)


def antiquant(
    op: str,
    stored: torch.dtype,
    modes: tuple[int, int],
    scales: tuple[Tensor | None, Tensor | None],
    offsets: tuple[Tensor | None, Tensor | None],
) -> Antiquant | None:
    """Antiquantisation of (key, value), or None if neither has a scale."""
    if scales[0] is None and scales[1] is None:
        return None
    if scales[0] is None or scales[1] is None:
        raise limits.refuse(op, "scales of key and value", "only one of them", "both or neither")
    if (offsets[0] is None) != (offsets[1] is None):
        raise limits.refuse(op, "offsets of key and value", "only one of them", "both or neither")
    if stored != torch.int8:
        raise limits.not_simulated(op, "key.dtype with scales", stored)
    for mode in modes:
        if mode not in range(4):
            raise limits.not_simulated(op, "antiquant mode", mode)
    return Antiquant(Scales(modes[0], scales[0], offsets[0]), Scales(modes[1], scales[1], offsets[1]))
