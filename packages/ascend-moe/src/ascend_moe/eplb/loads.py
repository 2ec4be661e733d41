"""From the tokens that slots counted to the loads that a policy is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from ascend_moe.eplb.arrays import Floats, Integers
from ascend_moe.eplb.problem import checked_loads


class Phase(StrEnum):
    """Which steps count."""

    ALL = "all"
    PREFILL = "prefill"
    DECODE = "decode"

    def counts(self, prefill_tokens: int, decode_tokens: int) -> bool:
        """Return whether a step with these tokens, over all data-parallel ranks, counts; an empty one never does.

        A step with both is a prefill step: its prompt tokens decide where the load goes.
        """
        if prefill_tokens + decode_tokens == 0:
            return False
        if self is Phase.ALL:
            return True
        return (prefill_tokens > 0) == (self is Phase.PREFILL)


def sum_over_ranks(counts: Sequence[ArrayLike]) -> Floats:
    """Return the sum of the ranks' counts; each rank sees only tokens of its own slots, or of its own batch.

    Args:
        counts: one array per rank, all [layers, experts].

    Raises:
        ValueError: no array, or arrays of different shapes.
    """
    arrays = [checked_loads(count, f"the counts of rank {rank}") for rank, count in enumerate(counts)]
    if not arrays or len({array.shape for array in arrays}) != 1:
        raise ValueError(f"every rank's counts must have the same shape, these have {[it.shape for it in arrays]}")
    return np.sum(arrays, axis=0)


def logical_loads(slot_counts: ArrayLike, placement: Integers, experts: int) -> Floats:
    """Return the load of each logical expert, [layers, experts]: the sum over the slots that hold it.

    Args:
        slot_counts: tokens that each slot handled, [layers, ranks, slots].
        placement: the logical expert in each slot while they were counted, [layers, ranks, slots].
        experts: number of logical experts.

    Raises:
        ValueError: shapes that differ.
    """
    counts = checked_loads(slot_counts, "the slots' counts", 3)
    if counts.shape != placement.shape:
        raise ValueError(f"the slots' counts are {counts.shape}, the placement is {placement.shape}")
    layers = len(placement)
    keys = placement.reshape(layers, -1) + experts * np.arange(layers)[:, None]
    loads = np.bincount(keys.ravel(), counts.ravel(), layers * experts)
    return np.asarray(loads, dtype=np.float64).reshape(layers, experts)


class LoadWindow:
    """The loads of the last intervals, for policies that look at how loads vary.

    Args:
        intervals: how many are kept.
        phase: which steps count.
    """

    def __init__(self, intervals: int, phase: Phase = Phase.ALL) -> None:
        if intervals < 1:
            raise ValueError(f"intervals is {intervals}; it is at least 1")
        self.intervals = intervals
        self.phase = phase
        self._kept: list[Floats] = []

    def add(self, loads: ArrayLike, prefill_tokens: int, decode_tokens: int) -> bool:
        """Keep the loads of an interval, [layers, experts], if its phase counts; return whether it does."""
        if not self.phase.counts(prefill_tokens, decode_tokens):
            return False
        self._kept = [*self._kept, checked_loads(loads)][-self.intervals :]
        return True

    def samples(self) -> Floats:
        """Return the loads kept, [intervals, layers, experts], the oldest first.

        Raises:
            ValueError: there are none yet.
        """
        if not self._kept:
            raise ValueError("no interval has been added yet")
        return np.stack(self._kept)

    def loads(self) -> Floats:
        """Return the sum of the loads kept, [layers, experts]; raises as `samples`."""
        return self.samples().sum(axis=0)
