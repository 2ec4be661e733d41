"""Which exchange a step uses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Method(StrEnum):
    """The exchanges."""

    ALL_GATHER = "all_gather"
    ALL_TO_ALL = "all_to_all"
    FUSED_DISPATCH = "fused_dispatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What the choice depends on.

    Attributes:
        soc: the family of chips.
        ranks: that share the experts.
        local_experts: of a rank.
        top_k: experts of a token.
        tokens: of the rank that has most of them in this step.
        capacity: tokens of a rank that the fused operators were set up for.
        half_precision: whether tokens are float16 or bfloat16, which alone the fused operators take.
        captured: whether the step is recorded as a graph.
    """

    soc: str
    ranks: int
    local_experts: int
    top_k: int
    tokens: int
    capacity: int
    half_precision: bool
    captured: bool = False

    @property
    def fits_fused_dispatch(self) -> bool:
        """Whether the fused operators can take the step."""
        return self.half_precision and self.tokens <= self.capacity


_A2_MOST_LOCAL_EXPERTS = 24
_A2_FEWEST_RANKS = 16


def choose_method(step: Step, wanted: Method | None = None) -> Method:
    """The exchange that is fastest where it is possible, or the one that a user wants where that is possible.

    The fused operators for few tokens, on A2 only where many ranks have few experts each; beyond their capacity,
    all-to-all on chips whose links make it worth while, unless the step is captured. Where the fused operators are
    wanted and cannot take a step, all-to-all does; a captured step that cannot have what is wanted uses all-gather.
    """
    if step.ranks == 1:
        return Method.ALL_GATHER
    if wanted is not None:
        return _as_wanted(step, wanted)
    match step.soc:
        case "A2":
            spread = step.local_experts <= _A2_MOST_LOCAL_EXPERTS and step.ranks >= _A2_FEWEST_RANKS
            return Method.FUSED_DISPATCH if step.fits_fused_dispatch and spread else Method.ALL_GATHER
        case "A3" | "A5":
            if step.fits_fused_dispatch:
                return Method.FUSED_DISPATCH
            # Up to top_k ranks most tokens are needed on all of them.
            gathers = step.captured or (step.soc == "A5" and step.ranks <= step.top_k)
            return Method.ALL_GATHER if gathers else Method.ALL_TO_ALL
        case _:
            return Method.ALL_GATHER


def _as_wanted(step: Step, wanted: Method) -> Method:
    if wanted is Method.ALL_GATHER or (wanted is Method.FUSED_DISPATCH and step.fits_fused_dispatch):
        return wanted
    return Method.ALL_GATHER if step.captured else Method.ALL_TO_ALL
