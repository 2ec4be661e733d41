"""What a router does, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scoring(StrEnum):
    """How logits become scores; the values are vLLM's ``scoring_func``."""

    SOFTMAX = "softmax"
    SIGMOID = "sigmoid"
    SQRT_SOFTPLUS = "sqrtsoftplus"


class GroupScore(StrEnum):
    """How good a group of experts is for a token."""

    MAX = "max"
    """The best score in it: DeepSeek-V2."""
    TOP2_SUM = "top2_sum"
    """The sum of the two best scores, correction bias included: DeepSeek-V3."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Experts in ``count`` equal groups, of which a token may use the ``kept`` best."""

    count: int
    kept: int
    score: GroupScore

    def __post_init__(self) -> None:
        if not 1 <= self.kept <= self.count:
            raise ValueError(f"{self.kept} of {self.count} groups of experts are kept; allowed: 1 to {self.count}")


@dataclass(frozen=True, slots=True)
class Rule:
    """How a token's experts and their weights follow from its logits.

    Attributes:
        top_k: experts of a token.
        scoring: from logits to scores.
        renormalize: whether a token's weights are divided by their sum.
        scale: what the weights are multiplied by in the end, once.
        groups: None where a token may use all experts.
    """

    top_k: int
    scoring: Scoring
    renormalize: bool
    scale: float = 1.0
    groups: Groups | None = None

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise ValueError(f"top_k is {self.top_k}; a token needs at least one expert")

    def check(self, experts: int) -> None:
        """Refuse a number of experts that the rule cannot choose from.

        Raises:
            ValueError: names both numbers.
        """
        if self.groups is None:
            if self.top_k > experts:
                raise ValueError(f"top_k is {self.top_k}, but there are only {experts} experts")
            return
        count, kept = self.groups.count, self.groups.kept
        if experts % count:
            raise ValueError(f"{experts} experts do not divide into {count} equal groups")
        size = experts // count
        if self.groups.score is GroupScore.TOP2_SUM and size < 2:
            raise ValueError(f"a group is scored by its two best experts, but {count} groups of {experts} have {size}")
        if self.top_k > kept * size:
            raise ValueError(f"top_k is {self.top_k}, but {kept} groups of {size} have only {kept * size} experts")
