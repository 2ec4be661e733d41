"""Every rank sends each token to the ranks of its experts and to no other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.distributed as dist

from ascend_moe.comm.exchange import Arrived, Tokens
from ascend_moe.comm.ranks import ExpertRanks, SameTokens, part_of, whole_of
from ascend_moe.experts import Sorted, add_up, sort_by_expert


class Sent(NamedTuple):
    """How the rows of a step went out and came in.

    Attributes:
        where: this rank's rows, sorted by expert.
        weights: [tokens, top_k].
        send: rows to every rank.
        receive: rows from every rank.
    """

    where: Sorted
    weights: torch.Tensor
    send: list[int]
    receive: list[int]


@dataclass(frozen=True)
class AllToAll:
    """Moves least; the host has to know how much, so a captured graph cannot hold it.

    Attributes:
        ranks: who holds the experts.
        same: the ranks with the same tokens.
    """

    ranks: ExpertRanks
    same: SameTokens | None = None

    def prepare(self, tokens: Tokens) -> Tokens:
        """See :class:`~ascend_moe.comm.exchange.Exchange`."""
        return part_of(tokens, self.same)

    def dispatch(self, tokens: Tokens) -> tuple[Arrived, Sent]:
        """One row for every choice of a local expert, by source rank and expert."""
        weights, experts = tokens.choice
        where = self._sort(tokens.hidden, experts)
        going = where.counts.view(self.ranks.size, self.ranks.local)
        coming = torch.empty_like(going)
        dist.all_to_all_single(coming, going, group=self.ranks.group)
        send, receive = torch.stack((going.sum(1), coming.sum(1))).tolist()
        rows = self._send(where.rows, send, receive)
        slots = torch.arange(self.ranks.local, device=rows.device, dtype=torch.int32).repeat(self.ranks.size)
        slots = slots.repeat_interleave(coming.flatten(), output_size=len(rows)).unsqueeze(1)
        arrived = Arrived(rows, slots, torch.ones(slots.shape, device=rows.device))
        return arrived, Sent(where, weights, send, receive)

    def combine(self, results: torch.Tensor, ticket: Sent) -> torch.Tensor:
        """Fetch the results and add them up by token, weighted."""
        rows = self._send(results, ticket.receive, ticket.send)
        if not len(rows):
            return rows
        return add_up(rows, ticket.where, ticket.weights)

    def finalize(self, sums: torch.Tensor, tokens: Tokens) -> torch.Tensor:
        """See :class:`~ascend_moe.comm.exchange.Exchange`."""
        return whole_of(sums, tokens, self.same)

    def _sort(self, hidden: torch.Tensor, experts: torch.Tensor) -> Sorted:
        if len(hidden):
            return sort_by_expert(hidden, experts, self.ranks.experts)
        counts = torch.zeros(self.ranks.experts, dtype=torch.int64, device=hidden.device)
        return Sorted(hidden, counts, experts.flatten())

    def _send(self, rows: torch.Tensor, send: list[int], receive: list[int]) -> torch.Tensor:
        received = rows.new_empty((sum(receive), rows.shape[1]))
        dist.all_to_all_single(received, rows.contiguous(), receive, send, group=self.ranks.group)
        return received
