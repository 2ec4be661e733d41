"""Layers of DeepSeek-V3's kind in vLLM's own class, on arrangements of four ranks. Imported by the ranks too."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch

from ..comm.cases import CORRECTION, EXPERTS, HIDDEN, INTERMEDIATE, draw, dtype_of, parameters

WORLD, SHARED = 4, 20
TOKENS = (5, 3, 1, 7)
"""Of the data parallel ranks; the third is idle, which in vLLM computes a token for nobody."""
METHODS = ("all_gather", "all_to_all", "fused_dispatch")


@dataclass(frozen=True)
class Arrangement:
    """How many ranks divide what; experts are divided over the data and tensor parallel ranks together."""

    data: int
    tensor: int
    pipeline: int = 1

    def __str__(self) -> str:
        return f"dp{self.data}-tp{self.tensor}-ep{self.data * self.tensor}"

    @property
    def sequence_parallel(self) -> bool:
        """Whether vLLM spreads the tokens over the tensor parallel ranks, which then hold whole shared experts."""
        return self.data > 1 and self.tensor > 1

    def replica_of(self, rank: int) -> int:
        """The data parallel rank: ranks are numbered by data, pipeline, tensor."""
        return rank // (self.tensor * self.pipeline)


ARRANGEMENTS = [Arrangement(4, 1), Arrangement(2, 2), Arrangement(1, 4), Arrangement(2, 1, 2), Arrangement(1, 2, 2)]


@dataclass(frozen=True)
class Case:
    """A layer, and the way its tokens are exchanged."""

    arrangement: Arrangement
    method: str
    captured: bool = False

    def __str__(self) -> str:
        return f"{self.arrangement}-{self.method}" + ("-graph" if self.captured else "")

    @property
    def dtype(self) -> torch.dtype:
        """Of tokens and weights."""
        return dtype_of(self.method)


CASES = [
    *(Case(*it) for it in itertools.product(ARRANGEMENTS, METHODS)),
    # All-to-all is captured as all-gather.
    *(Case(ARRANGEMENTS[number], method, captured=True) for number, method in [(0, "fused_dispatch"), (1, "auto")]),
]


def inputs(replica: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [tokens, HIDDEN] and logits [tokens, EXPERTS] of a data parallel rank."""
    count = TOKENS[replica]
    return draw(count, HIDDEN, seed=10 + replica).to(dtype), draw(count, EXPERTS, seed=20 + replica) * 4


def shared_parameters(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """A shared expert: [2 * SHARED, HIDDEN], gate before up, and [HIDDEN, SHARED]."""
    return draw(2 * SHARED, HIDDEN, seed=6).to(dtype), draw(HIDDEN, SHARED, seed=7).to(dtype)


__all__ = [
    "ARRANGEMENTS",
    "CASES",
    "CORRECTION",
    "EXPERTS",
    "HIDDEN",
    "INTERMEDIATE",
    "METHODS",
    "SHARED",
    "TOKENS",
    "WORLD",
    "Arrangement",
    "Case",
    "inputs",
    "parameters",
    "shared_parameters",
]
