"""Every rank gets all tokens, computes its experts' share, and gets the sums of its tokens back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F

from ascend_moe.comm.exchange import Arrived, Tokens
from ascend_moe.comm.ranks import ExpertRanks, SameTokens, part_of, whole_of


@dataclass(frozen=True)
class AllGather:
    """Two collectives of fixed size, so a captured graph can hold them; each rank reads every token.

    Attributes:
        ranks: who holds the experts.
        most_tokens: of a rank in a step; every rank sends as many.
        same: the ranks with the same tokens.
    """

    ranks: ExpertRanks
    most_tokens: int
    same: SameTokens | None = None

    def prepare(self, tokens: Tokens) -> Tokens:
        """See :class:`~ascend_moe.comm.exchange.Exchange`."""
        return part_of(tokens, self.same)

    def dispatch(self, tokens: Tokens) -> tuple[Arrived, int]:
        """All ranks' tokens; the ticket is the number of this rank's."""
        count = len(tokens.hidden)
        if count > self.most_tokens:
            raise ValueError(f"{count} tokens are to be gathered, the exchange was made for at most {self.most_tokens}")
        weights, experts = tokens.choice
        # Rows without a token belong to no expert.
        hidden, weights = self._gather(tokens.hidden, 0), self._gather(weights, 0)
        local, first = self.ranks.local, self.ranks.rank * self.ranks.local
        slots = self._gather(experts, -1) - first
        slots = slots.masked_fill((slots < 0) | (slots >= local), local)
        return Arrived(hidden, slots.int(), weights), count

    def combine(self, results: torch.Tensor, ticket: int) -> torch.Tensor:
        """The sum of all ranks' shares for this rank's tokens."""
        sums = results.new_empty((self.most_tokens, results.shape[1]))
        dist.reduce_scatter_tensor(sums, results, group=self.ranks.group)
        return sums[:ticket]

    def finalize(self, sums: torch.Tensor, tokens: Tokens) -> torch.Tensor:
        """See :class:`~ascend_moe.comm.exchange.Exchange`."""
        return whole_of(sums, tokens, self.same)

    def _gather(self, tensor: torch.Tensor, filling: int) -> torch.Tensor:
        padded = F.pad(tensor, (0, 0, 0, self.most_tokens - len(tensor)), value=filling)
        gathered = tensor.new_empty((self.ranks.size * self.most_tokens, tensor.shape[1]))
        dist.all_gather_into_tensor(gathered, padded.contiguous(), group=self.ranks.group)
        return gathered
