"""From logical experts to the slots that hold them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ascend_moe.eplb.arrays import Integers
from ascend_moe.eplb.placement import replica_counts


def local_slots(placement: Integers, experts: int) -> Integers:
    """Return the slot of each expert on each rank, [layers, ranks, experts]; -1 where the rank does not hold it."""
    layers, ranks, slots = placement.shape
    table = np.full((layers, ranks, experts), -1, dtype=np.int64)
    np.put_along_axis(table, placement, np.broadcast_to(np.arange(slots), placement.shape), axis=2)
    return table


def replicas(placement: Integers, experts: int) -> tuple[Integers, Integers]:
    """Return (slots of each expert, number of replicas).

    The first is [layers, experts, most replicas of any], of physical slots rank × slots + slot in ascending order,
    padded with -1; the second [layers, experts].
    """
    counts = replica_counts(placement, experts)
    layers = len(placement)
    flat = placement.reshape(layers, -1)
    table = np.full((layers, experts, int(counts.max())), -1, dtype=np.int64)
    order = np.argsort(flat, axis=1, kind="stable")
    owner = np.take_along_axis(flat, order, axis=1)
    start = np.cumsum(counts, axis=1) - counts
    position = np.arange(flat.shape[1]) - np.take_along_axis(start, owner, axis=1)
    table[np.arange(layers)[:, None], owner, position] = order
    return table, counts


def routing_table(placement: Integers, experts: int, rank: int, rows: int = 1024) -> NDArray[np.int32]:
    """Return which replica each token takes on `rank`, [layers, rows, experts] of int32.

    Row r, expert e holds the physical slot of replica (r + rank + e) mod (replicas of e); token t of a step uses row
    t mod `rows`. Tokens of a rank so spread evenly over the replicas, and ranks start at different ones. The shape
    depends on the model alone: a graph that captured the table's address goes on to use it when its content changes.
    """
    table, counts = replicas(placement, experts)
    turn = np.arange(rows)[:, None] + rank + np.arange(experts)[None, :]
    chosen = turn[None] % counts[:, None, :]
    return np.take_along_axis(table[:, None], chosen[..., None], axis=3)[..., 0].astype(np.int32)
