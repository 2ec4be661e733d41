# SPDX-License-Identifier: Apache-2.0
"""Sending tokens to the ranks of their experts.

The first ``shared_expert_rank_num`` ranks hold shared experts, each on as many ranks; the others hold equal shares of
the routed experts. *Lanes* number the receivers: the shared ranks, then the routed experts. A slot is one of a rank's
tokens bound for one lane.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.quant.dynamic import per_token
from ascend_sim.references.quant.microscale import element, quantise
from ascend_sim.references.ranks import Ranks
from ascend_sim.references.undefined import undefined


@dataclass(frozen=True, slots=True)
class Placement:
    """Which rank holds which experts.

    Args:
        shared: Number of shared experts that have ranks.
        shared_ranks: Their ranks, ahead of all others.
        routed: Number of routed experts.
    """

    size: int
    shared: int
    shared_ranks: int
    routed: int

    @property
    def local(self) -> int:
        """Routed experts of a rank that has any."""
        return self.routed // (self.size - self.shared_ranks)

    @property
    def lanes(self) -> int:
        return self.shared_ranks + self.routed

    def lanes_of(self, rank: int) -> tuple[int, int]:
        """First lane and end of a rank."""
        if rank < self.shared_ranks:
            return rank, rank + 1
        first = self.shared_ranks + (rank - self.shared_ranks) * self.local
        return first, first + self.local

    def scale_rows(self, lane: Tensor) -> Tensor:
        """The row of the smoothing factors for each lane: the shared experts', then the routed ones'."""
        if not self.shared_ranks:
            return lane
        expert = lane // (self.shared_ranks // self.shared)
        return torch.where(lane < self.shared_ranks, expert, lane - self.shared_ranks + self.shared)

    def shared_lanes(self, rank: int) -> list[int]:
        """The lanes that the tokens of a rank go to, one for each shared expert."""
        if not self.shared_ranks:
            return []
        each = self.shared_ranks // self.shared
        return [expert * each + rank % each for expert in range(self.shared)]


def placement(op: str, ranks: Ranks, shared: int, shared_ranks: int, routed: int, kind: int) -> Placement:
    """The placement of a call, checked."""
    if kind != 0:
        raise limits.not_simulated(op, "expert_shard_type", kind)
    if routed % (ranks.size - shared_ranks):
        raise limits.refuse(op, "moe_expert_num", routed, f"a multiple of {ranks.size - shared_ranks} ranks")
    if shared_ranks and (not shared or shared_ranks % shared):
        raise limits.refuse(op, "shared_expert_rank_num", shared_ranks, f"a multiple of shared_expert_num {shared}")
    return Placement(ranks.size, shared, shared_ranks, routed)


@dataclass(frozen=True, slots=True)
class Sent:
    """The slots of this rank in the order in which they are sent, by lane and then by token and choice.

    Args:
        token: Their tokens.
        choice: Their columns of expert_ids; -1 for shared experts.
        lane: Their lanes.
        counts: Slots for each lane.
    """

    token: Tensor
    choice: Tensor
    lane: Tensor
    counts: Tensor


def active_choices(expert_ids: Tensor, mask: Tensor | None) -> Tensor:
    """Which choices [N, K] take part, by a mask of tokens [N] or choices [N, K]."""
    if mask is None:
        return torch.ones(expert_ids.shape, dtype=torch.bool)
    return mask.bool().view(len(expert_ids), -1).expand(expert_ids.shape)


def slots_of(expert_ids: Tensor, mask: Tensor | None, where: Placement, rank: int) -> Sent:
    """What a rank with these choices sends; experts beyond the routed ones get nothing."""
    active = active_choices(expert_ids, mask)
    token, choice = (active & (expert_ids >= 0) & (expert_ids < where.routed)).nonzero(as_tuple=True)
    lane = expert_ids[token, choice].long() + where.shared_ranks
    used = active.any(1).nonzero().flatten()
    for shared in where.shared_lanes(rank):
        token = torch.cat((token, used))
        choice = torch.cat((choice, torch.full_like(used, -1)))
        lane = torch.cat((lane, torch.full_like(used, shared)))
    order = lane.argsort(stable=True)
    return Sent(token[order], choice[order], lane[order], torch.bincount(lane, minlength=where.lanes))


def splits(counts: Tensor, where: Placement) -> list[int]:
    """Rows for each rank from rows for each lane."""
    return [int(counts[slice(*where.lanes_of(rank))].sum()) for rank in range(where.size)]


def by_lane(counts: Tensor) -> Tensor:
    """Order of rows [source rank, lane] that puts them by lane and then by source rank; ``counts`` [ranks, lanes]."""
    ranks, lanes = counts.shape
    key = torch.arange(lanes).expand(ranks, -1) * ranks + torch.arange(ranks).unsqueeze(1)
    return key.flatten().repeat_interleave(counts.flatten()).argsort(stable=True)


def quantised_rows(
    op: str, rows: Tensor, smooth: Tensor, mode: int, scales: Tensor | None, number: int | None
) -> tuple[Tensor, Tensor | None]:
    """Rows as they are sent, and their scales: 0 as they are, 2 int8 by token, 4 microscaled.

    ``smooth`` are the rows of ``scales``.
    """
    if mode == 0:
        if scales is not None:
            raise limits.not_simulated(op, "scales", "given with quant_mode 0")
        return rows, None
    values = rows.float()
    if mode == 2:
        return per_token(values if scales is None else values * scales[smooth])
    if mode != 4:
        raise limits.not_simulated(op, "quant_mode", mode)
    y, codes = quantise(values, element(op, "y_dtype", number))
    return y, codes.flatten(1)


def fill(values: Tensor, rows: int) -> Tensor:
    """``values`` ahead of undefined rows up to ``rows``."""
    out = undefined((rows, *values.shape[1:]), values.dtype)
    out[: len(values)] = values
    return out


@dataclass(frozen=True, slots=True)
class Received:
    """What a rank receives, by expert and then by source rank.

    Args:
        counts: Rows [experts, ranks].
    """

    rows: Tensor
    scales: Tensor | None
    weights: Tensor | None
    counts: Tensor


def dispatch(
    ranks: Ranks, where: Placement, sent: Sent, rows: Tensor, scales: Tensor | None, weights: Tensor | None
) -> Received:
    """Exchange rows, their scales and their weights."""
    counts = ranks.gather(sent.counts)
    mine = counts[:, slice(*where.lanes_of(ranks.rank))]
    send, receive = splits(sent.counts, where), mine.sum(1).tolist()
    order = by_lane(mine)
    exchanged = (
        None if item is None else ranks.exchange(item, send, receive)[order] for item in (rows, scales, weights)
    )
    first, second, third = exchanged
    assert first is not None
    return Received(first, second, third, mine.t().contiguous())


def give_back(ranks: Ranks, where: Placement, sent: Sent, rows: Tensor) -> Tensor:
    """Rows of the experts' results, by expert and source rank, in the order in which their tokens were sent."""
    counts = ranks.gather(sent.counts)[:, slice(*where.lanes_of(ranks.rank))]
    order = by_lane(counts)
    by_rank = torch.empty_like(rows[: len(order)])
    by_rank[order] = rows[: len(order)]
    return ranks.exchange(by_rank, counts.sum(1).tolist(), splits(sent.counts, where))
