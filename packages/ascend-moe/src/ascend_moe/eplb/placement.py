"""Placements: the logical expert in every slot, [layers, ranks, slots] of int64."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ascend_moe.eplb.arrays import Booleans, Floats, Integers


class InvalidPlacementError(ValueError):
    """A placement that no rank may load; the message names layer and rank."""


def slots_per_rank(experts: int, redundant: int, ranks: int) -> int:
    """Return the slots of a rank for `experts` logical and `redundant` further physical experts.

    Raises:
        ValueError: a number out of range, or physical experts that do not divide evenly among the ranks, or more slots
            on a rank than there are experts, of which one rank never needs two copies.
    """
    if experts < 1 or ranks < 1 or redundant < 0:
        raise ValueError(f"{experts} experts, {redundant} redundant ones, {ranks} ranks: only redundant may be 0")
    physical = experts + redundant
    if physical % ranks:
        raise ValueError(
            f"{experts} experts and {redundant} redundant ones are {physical} physical experts, which do not divide "
            f"evenly among {ranks} ranks; {-physical % ranks} more redundant experts would"
        )
    if physical // ranks > experts:
        raise ValueError(f"{physical // ranks} slots on a rank are more than the {experts} experts there are")
    return physical // ranks


def initial_placement(layers: int, experts: int, ranks: int, redundant: int = 0) -> Integers:
    """Return the placement before any load is known: slot after slot, the experts in order, again from the first.

    This is vLLM's initial placement too: physical expert p holds logical expert p mod `experts`.
    """
    slots = slots_per_rank(experts, redundant, ranks)
    one = np.arange(ranks * slots, dtype=np.int64).reshape(ranks, slots) % experts
    return np.repeat(one[None], layers, axis=0)


def checked_placement(placement: ArrayLike, experts: int) -> Integers:
    """Return `placement` as a new int64 array if it is valid: every expert there, none twice on a rank.

    Raises:
        InvalidPlacementError: another number of dimensions, or the first fault, with layer and rank.
    """
    given = np.asarray(placement)
    if given.ndim != 3 or not given.size:
        raise InvalidPlacementError(f"a placement is [layers, ranks, slots], all at least 1; this is {given.shape}")
    if not np.issubdtype(given.dtype, np.integer):
        raise InvalidPlacementError(f"a placement holds integers, this one {given.dtype}")
    array = np.array(given, dtype=np.int64, order="C")
    ranks = array.shape[1]
    outside = np.argwhere((array < 0) | (array >= experts))
    if len(outside):
        layer, rank, slot = (int(it) for it in outside[0])
        raise InvalidPlacementError(
            f"layer {layer}, rank {rank}, slot {slot} holds expert {array[layer, rank, slot]}; "
            f"there are experts 0 to {experts - 1}"
        )
    per_rank = np.sort(array, axis=2)
    twice = np.argwhere(per_rank[:, :, 1:] == per_rank[:, :, :-1])
    if len(twice):
        layer, rank, position = (int(it) for it in twice[0])
        expert = per_rank[layer, rank, position]
        raise InvalidPlacementError(f"layer {layer}, rank {rank} holds expert {expert} twice")
    missing = np.argwhere(replica_counts(array, experts) == 0)
    if len(missing):
        layer, expert = (int(it) for it in missing[0])
        raise InvalidPlacementError(f"layer {layer} has expert {expert} on none of its {ranks} ranks")
    return array


def replica_counts(placement: Integers, experts: int) -> Integers:
    """Return in how many slots each expert is, [layers, experts]."""
    layers = placement.shape[0]
    keys = placement.reshape(layers, -1) + experts * np.arange(layers)[:, None]
    return np.bincount(keys.ravel(), minlength=layers * experts).reshape(layers, experts)


def rank_loads(placement: Integers, loads: Floats) -> Floats:
    """Return the load of every rank, [layers, ranks]: tokens of an expert are spread evenly over its replicas."""
    return slot_loads(placement, loads).sum(axis=2)


def slot_loads(placement: Integers, loads: Floats) -> Floats:
    """Return the load of every slot, [layers, ranks, slots]."""
    each = loads / np.maximum(replica_counts(placement, loads.shape[1]), 1)
    return np.take_along_axis(each, placement.reshape(len(placement), -1), axis=1).reshape(placement.shape)


def moved(before: Integers, after: Integers) -> Booleans:
    """Return which slots of `after` hold an expert that their rank did not hold before, [layers, ranks, slots]."""
    return ~(after[..., :, None] == before[..., None, :]).any(axis=-1)
