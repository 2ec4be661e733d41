"""The one judge of placements: what every policy's answer has to satisfy before any weight moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ascend_moe.eplb.arrays import Integers
from ascend_moe.eplb.placement import InvalidPlacementError, checked_placement, moved


def check(placement: ArrayLike, before: Integers, experts: int) -> Integers:
    """Check `placement` as the successor of `before` and return the expert weights that move, [layers].

    Valid means: the same [layers, ranks, slots]; every logical expert in some slot; none twice on a rank; and no weight
    moved that need not be, given what each rank is to hold: an expert that a rank keeps stays in its slot, so that the
    weights that move are exactly those of experts which are new to their rank.

    Raises:
        InvalidPlacementError: the first fault found, with layer and rank.
    """
    given = np.asarray(placement)
    if given.shape != before.shape:
        raise InvalidPlacementError(f"the placement is {given.shape}, the one it replaces {before.shape}")
    after = checked_placement(given, experts)
    arrivals = moved(before, after)
    shifted = np.argwhere(~arrivals & (after != before))
    if len(shifted):
        layer, rank, slot = (int(it) for it in shifted[0])
        expert = after[layer, rank, slot]
        was = int(np.flatnonzero(before[layer, rank] == expert)[0])
        raise InvalidPlacementError(
            f"layer {layer}, rank {rank} keeps expert {expert} but moves it from slot {was} to slot {slot}"
        )
    return arrivals.sum(axis=(1, 2), dtype=np.int64)
