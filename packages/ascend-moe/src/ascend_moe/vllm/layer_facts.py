"""What the choice of an exchange depends on beside the step."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ascend_moe.comm import Method, Step, choose_method
from ascend_moe.comm.mc2 import DTYPES


@dataclass(frozen=True, kw_only=True)
class LayerFacts:
    """A layer as its exchanges see it.

    Attributes:
        soc: the family of chips.
        ranks: that share the experts.
        local_experts: of a rank.
        top_k: experts of a token.
        most_tokens: that a rank sends in a step.
        capacity: tokens of a rank that the fused operators take.
    """

    soc: str
    ranks: int
    local_experts: int
    top_k: int
    most_tokens: int
    capacity: int

    def step(self, tokens: int, dtype: torch.dtype, *, captured: bool) -> Step:
        """A step whose ranks send at most so many tokens each."""
        return Step(
            soc=self.soc,
            ranks=self.ranks,
            local_experts=self.local_experts,
            top_k=self.top_k,
            tokens=tokens,
            capacity=self.capacity,
            half_precision=dtype in DTYPES,
            captured=captured,
        )

    def possible_methods(self, dtype: torch.dtype, wanted: Method | None) -> set[Method]:
        """The methods that steps may use."""
        steps = [
            self.step(tokens, dtype, captured=captured)
            for tokens in {1, self.most_tokens}
            for captured in (False, True)
        ]
        return {choose_method(it, wanted) for it in steps}
