"""Which rank sends which expert to whom, so that a new placement can be loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascend_moe.eplb.arrays import Integers
from ascend_moe.eplb.placement import moved
from ascend_moe.eplb.problem import Plan


@dataclass(frozen=True)
class Transfer:
    """One expert's weights on their way, everything that belongs to the expert: weights, scales, biases.

    Attributes:
        expert: the logical expert.
        source, source_slot: the rank that sends it, and the slot it is in there before the change.
        target, target_slot: the rank that receives it, and the slot it is in there after the change.
    """

    expert: int
    source: int
    source_slot: int
    target: int
    target_slot: int


@dataclass(frozen=True)
class LayerTransfers:
    """The transfers of one layer; all of them read the state before the first of them writes.

    Attributes:
        layer: its number among the layers with experts.
        transfers: sorted by target and slot.
    """

    layer: int
    transfers: tuple[Transfer, ...]

    def sends(self, rank: int) -> tuple[Transfer, ...]:
        """Return what `rank` sends."""
        return tuple(it for it in self.transfers if it.source == rank)

    def receives(self, rank: int) -> tuple[Transfer, ...]:
        """Return what `rank` receives."""
        return tuple(it for it in self.transfers if it.target == rank)


def plan_transfers(
    before: Integers, after: Integers, nodes: int = 1, order: Iterable[int] | None = None
) -> tuple[LayerTransfers, ...]:
    """Return the transfers that turn `before` into `after`, layer by layer, for the layers that change.

    An expert that stays on its rank is not sent. For each rank, sources are chosen such that the most experts that any
    one rank sends to it is as small as can be (an assignment per receiving rank); among those, sources of the same node
    come first, and then those that have sent least in this layer.

    Args:
        before, after: [layers, ranks, slots]; both valid, see `check`.
        nodes: hosts that the ranks are spread over evenly.
        order: the layers to look at, in this order; all of them by default.
    """
    ranks = before.shape[1]
    arrivals = moved(before, after)
    planned = []
    for layer in range(len(before)) if order is None else order:
        sent = np.zeros(ranks, dtype=np.int64)
        transfers: list[Transfer] = []
        for target in range(ranks):
            slots = np.flatnonzero(arrivals[layer, target])
            if len(slots):
                experts = after[layer, target, slots]
                holders = [np.flatnonzero((before[layer] == expert).any(axis=1)) for expert in experts]
                sources = _sources(holders, target, ranks // nodes, sent)
                for slot, expert, source in zip(slots, experts, sources, strict=True):
                    source_slot = int(np.flatnonzero(before[layer, source] == expert)[0])
                    transfers.append(Transfer(int(expert), source, source_slot, target, int(slot)))
                    sent[source] += 1
        if transfers or (before[layer] != after[layer]).any():
            planned.append(LayerTransfers(int(layer), tuple(transfers)))
    return tuple(planned)


def first_replicas(layer: int, placement: Integers) -> LayerTransfers:
    """Return the transfers that bring every further replica of an expert the weights of its first one.

    Args:
        layer: its number.
        placement: [ranks, slots] of the layer; valid, see `check`.
    """
    first: dict[int, tuple[int, int]] = {}
    transfers = []
    for target, held in enumerate(placement.tolist()):
        for slot, expert in enumerate(held):
            source, source_slot = first.setdefault(expert, (target, slot))
            if source != target:
                transfers.append(Transfer(expert, source, source_slot, target, slot))
    return LayerTransfers(layer, tuple(transfers))


def transfers_of(plan: Plan, before: Integers, nodes: int = 1) -> tuple[LayerTransfers, ...]:
    """Return the transfers of `plan`, the layer that gains most first."""
    return plan_transfers(before, plan.placement, nodes, plan.order)


def _sources(holders: Sequence[Integers], target: int, ranks_per_node: int, sent: Integers) -> list[int]:
    """Return a source for each expert, one of its `holders`, each used as evenly as possible."""
    node = target // ranks_per_node
    ordered = [
        sorted((int(rank) for rank in ranks), key=lambda rank: (rank // ranks_per_node != node, sent[rank], rank))
        for ranks in holders
    ]
    for limit in range(1, len(holders) + 1):
        used: dict[int, list[int]] = {}
        if all(_assign(number, ordered, limit, used, set()) for number in range(len(holders))):
            chosen = {number: rank for rank, numbers in used.items() for number in numbers}
            return [chosen[number] for number in range(len(holders))]
    raise ValueError(f"rank {target} needs an expert that no rank holds")


def _assign(
    number: int, ordered: Sequence[Sequence[int]], limit: int, used: dict[int, list[int]], seen: set[int]
) -> bool:
    """Give expert `number` a source that serves at most `limit`, moving others to further sources (Kuhn 1955)."""
    for rank in ordered[number]:
        if rank in seen:
            continue
        seen.add(rank)
        numbers = used.setdefault(rank, [])
        if len(numbers) < limit:
            numbers.append(number)
            return True
        for position, other in enumerate(numbers):
            if _assign(other, ordered, limit, used, seen):
                numbers[position] = number
                return True
    return False


def move_weights(layer: LayerTransfers, tensors: Sequence[Mapping[str, Any]]) -> None:
    """Carry out the transfers of a layer between ranks whose memory is all at hand: what an exchange has to amount to.

    Args:
        layer: the transfers.
        tensors: per rank, every tensor of the layer's experts by name: weights, and **scales and biases with them**.
            Each is indexed by slot: a list with one entry per slot, or a stacked array or torch tensor [slots, …].

    Raises:
        ValueError: ranks whose tensors have different names, as a rank would then wait for what nobody sends.
    """
    names = set(tensors[0])
    for rank, own in enumerate(tensors):
        if set(own) != names:
            raise ValueError(f"rank {rank} has the tensors {sorted(own)}, rank 0 has {sorted(names)}")
    # Everything is read before anything is written: a rank may send from the slot that it receives into.
    buffers = [
        {name: _copy(tensors[it.source][name][it.source_slot]) for name in sorted(names)} for it in layer.transfers
    ]
    for it, buffer in zip(layer.transfers, buffers, strict=True):
        for name, value in buffer.items():
            tensors[it.target][name][it.target_slot] = value


def _copy(value: Any) -> Any:
    """Return a copy of a torch tensor or of anything that numpy takes for an array."""
    return value.clone() if hasattr(value, "clone") else np.array(value)
