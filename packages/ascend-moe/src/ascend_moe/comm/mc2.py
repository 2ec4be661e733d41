"""Exchange by the vendor's fused operators ``npu_moe_distribute_dispatch_v2`` and ``npu_moe_distribute_combine_v2``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from ascend_moe.comm.exchange import Arrived, Tokens
from ascend_moe.comm.ranks import ExpertRanks, SameTokens, part_of, whole_of
from ascend_moe.routing import Choice

DTYPES = (torch.float16, torch.bfloat16)
"""What the operators send."""


class Sent(NamedTuple):
    """What the way back needs of the way out.

    Attributes:
        tokens: of this rank; one for a rank that has none.
        real: how many of them are real.
        assist: of the dispatch, for the combination.
        received: running sums of rows by expert and source rank.
    """

    tokens: Tokens
    real: int
    assist: torch.Tensor
    received: torch.Tensor


@dataclass(frozen=True)
class FusedDispatch:
    """Permutation and exchange in one operator each way, of fixed size, so a captured graph can hold them.

    Attributes:
        ranks: who holds the experts.
        most_tokens: of a rank in a step; sizes the result.
        same: the ranks with the same tokens.
    """

    ranks: ExpertRanks
    most_tokens: int
    same: SameTokens | None = None

    def prepare(self, tokens: Tokens) -> Tokens:
        """See :class:`~ascend_moe.comm.exchange.Exchange`."""
        return part_of(tokens, self.same)

    def dispatch(self, tokens: Tokens) -> tuple[Arrived, Sent]:
        """The rows of this rank's experts, sorted by expert."""
        count = len(tokens.hidden)
        if count > self.most_tokens:
            raise ValueError(f"{count} tokens are to be sent, the exchange was made for at most {self.most_tokens}")
        if tokens.hidden.dtype not in DTYPES:
            allowed = " and ".join(map(str, DTYPES))
            raise ValueError(f"the fused dispatch takes {allowed}, not {tokens.hidden.dtype}")
        if not count:
            # The operator takes no empty batch. The token goes to some experts; its sum is left away in the end.
            tokens = _one_token(tokens, self.ranks.experts)
        rows, _, assist, counts, received, _, _ = torch.ops.npu.npu_moe_distribute_dispatch_v2(
            tokens.hidden, tokens.choice.experts, **self._group(), expert_token_nums_type=1
        )
        return Arrived(rows, counts=counts), Sent(tokens, count, assist, received)

    def combine(self, results: torch.Tensor, ticket: Sent) -> torch.Tensor:
        """Fetch the results and add them up by token, weighted."""
        weights, experts = ticket.tokens.choice
        sums = torch.ops.npu.npu_moe_distribute_combine_v2(
            results, experts, ticket.assist, ticket.received, weights, **self._group()
        )
        return sums[: ticket.real]

    def finalize(self, sums: torch.Tensor, tokens: Tokens) -> torch.Tensor:
        """See :class:`~ascend_moe.comm.exchange.Exchange`."""
        return whole_of(sums, tokens, self.same)

    def _group(self) -> dict[str, Any]:
        backend = self.ranks.group._get_backend(torch.device("npu"))
        return {
            "group_ep": backend.get_hccl_comm_name(self.ranks.rank),
            "ep_world_size": self.ranks.size,
            "ep_rank_id": self.ranks.rank,
            "moe_expert_num": self.ranks.experts,
            "global_bs": self.most_tokens * self.ranks.size,
        }


def _one_token(tokens: Tokens, experts: int) -> Tokens:
    hidden, (weights, chosen) = tokens
    hidden, weights = F.pad(hidden, (0, 0, 0, 1)), F.pad(weights, (0, 0, 0, 1))
    first = torch.arange(chosen.shape[1], dtype=torch.int32, device=chosen.device) % experts
    return Tokens(hidden, Choice(weights, first.unsqueeze(0)))
