"""The ranks that hold a layer's experts, and the ranks that hold the same tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F

from ascend_moe.comm.exchange import Tokens
from ascend_moe.routing import Choice


@dataclass(frozen=True)
class ExpertRanks:
    """The expert parallel group, in which every rank has equally many experts, in order.

    Attributes:
        group: an HCCL group.
        experts: physical experts of all ranks.
    """

    group: dist.ProcessGroup
    experts: int

    def __post_init__(self) -> None:
        if self.experts % self.size:
            raise ValueError(f"{self.experts} physical experts do not divide evenly among {self.size} ranks")

    @property
    def size(self) -> int:
        """Ranks."""
        return dist.get_world_size(self.group)

    @property
    def rank(self) -> int:
        """This rank in the group."""
        return dist.get_rank(self.group)

    @property
    def local(self) -> int:
        """Experts of a rank."""
        return self.experts // self.size


@dataclass(frozen=True)
class SameTokens:
    """The tensor parallel ranks, which all hold the same tokens; each sends a part of them.

    Attributes:
        group: an HCCL group.
    """

    group: dist.ProcessGroup

    def part(self, tokens: Tokens) -> Tokens:
        """Equal parts; the last ones are filled up with tokens of zeros and weight zero."""
        size, rank = dist.get_world_size(self.group), dist.get_rank(self.group)
        each = -(-len(tokens.hidden) // size)
        missing = each * size - len(tokens.hidden)
        weights, experts = tokens.choice
        padded = [F.pad(it, (0, 0, 0, missing)) for it in (tokens.hidden, weights, experts)]
        hidden, weights, experts = (it[rank * each : (rank + 1) * each] for it in padded)
        return Tokens(hidden, Choice(weights, experts))

    def whole(self, sums: torch.Tensor, tokens: int) -> torch.Tensor:
        """All parts' sums without the filling."""
        gathered = sums.new_empty((dist.get_world_size(self.group) * len(sums), *sums.shape[1:]))
        dist.all_gather_into_tensor(gathered, sums.contiguous(), group=self.group)
        return gathered[:tokens]


def part_of(tokens: Tokens, same: SameTokens | None) -> Tokens:
    """This rank's part; everything where no other rank holds the tokens."""
    return tokens if same is None else same.part(tokens)


def whole_of(sums: torch.Tensor, tokens: Tokens, same: SameTokens | None) -> torch.Tensor:
    """The inverse of :func:`part_of`, for sums."""
    return sums if same is None else same.whole(sums, len(tokens.hidden))
