"""Layers in the styles of models, their tokens by rank, and the ways to exchange them. Imported by the ranks too."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import torch

from ascend_moe.routing import Groups, GroupScore, Rule, Scoring

WORLD, EXPERTS, HIDDEN, INTERMEDIATE = 4, 8, 16, 24
TOKENS = (5, 3, 0, 7)
"""Of each rank; the third has none."""
MOST_TOKENS = 8


@dataclass(frozen=True)
class Style:
    """What a model's layer does."""

    rule: Rule
    activation: str = "silu"
    biased: bool = False
    corrected: bool = False
    weight_on_input: bool = False


STYLES = {
    "mixtral": Style(Rule(2, Scoring.SOFTMAX, renormalize=True)),
    "qwen3-moe": Style(Rule(4, Scoring.SOFTMAX, renormalize=True)),
    "deepseek-v3": Style(
        Rule(3, Scoring.SIGMOID, renormalize=True, scale=2.5, groups=Groups(2, 1, GroupScore.TOP2_SUM)), corrected=True
    ),
    "gpt-oss": Style(Rule(2, Scoring.SOFTMAX, renormalize=True), "swigluoai", biased=True),
    "llama4": Style(Rule(1, Scoring.SIGMOID, renormalize=False), weight_on_input=True),
}


@dataclass(frozen=True)
class Case:
    """One layer on one arrangement of the four ranks.

    Attributes:
        style: a key of `STYLES`.
        method: the exchange.
        ranks: of an expert parallel group.
        same: ranks that hold the same tokens, those of the first of them.
    """

    style: str
    method: str
    ranks: int
    same: int = 1

    def __str__(self) -> str:
        return f"{self.style}-{self.method}-ep{self.ranks}" + (f"-tp{self.same}" if self.same > 1 else "")

    def tokens_of(self, rank: int) -> int:
        """How many tokens a rank holds."""
        return TOKENS[rank // self.same * self.same]


METHODS = ("all_gather", "all_to_all", "fused_dispatch")
CASES = [
    *(Case(*it) for it in itertools.product(STYLES, METHODS, (1, 2, 4))),
    *(Case("mixtral", method, 4, same=2) for method in METHODS),
]


def draw(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) / 2


@cache
def parameters(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """All experts' weights, rounded to a dtype; the same on every rank."""
    made = {
        "gate_up": draw(EXPERTS, 2 * INTERMEDIATE, HIDDEN, seed=1),
        "down": draw(EXPERTS, HIDDEN, INTERMEDIATE, seed=2),
        "gate_up_bias": draw(EXPERTS, 2 * INTERMEDIATE, seed=3),
        "down_bias": draw(EXPERTS, HIDDEN, seed=4),
    }
    return {name: it.to(dtype) for name, it in made.items()}


def inputs(case: Case, rank: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [tokens, HIDDEN] and logits [tokens, EXPERTS] of a rank."""
    holder, count = rank // case.same * case.same, case.tokens_of(rank)
    return draw(count, HIDDEN, seed=10 + holder).to(dtype), draw(count, EXPERTS, seed=20 + holder) * 4


CORRECTION = draw(EXPERTS, seed=5)


def dtype_of(method: str) -> torch.dtype:
    """The fused operators take no float32."""
    return torch.bfloat16 if method == "fused_dispatch" else torch.float32
