"""How experts are chosen: one token at a time, its groups as rows of a tile."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class RoutingPlan:
    """``programs`` programs over the tokens; a tile of ``groups`` x ``size`` experts, powers of two."""

    programs: int
    groups: int
    size: int
    warps: int


def plan_routing(target: Target, tokens: int, experts: int, groups: int) -> RoutingPlan:
    """The plan for ``experts`` experts in ``groups`` groups.

    Raises:
        ValueError: the experts do not fit on chip.
    """
    rows, size = next_power_of_two(groups), next_power_of_two(experts // groups)
    # Logits, scores, what is chosen from, and masks, in fp32.
    if target.kind == "ascend" and rows * size * 32 > target.unified_buffer:
        raise ValueError(f"{experts} experts in {groups} groups do not fit into {target.unified_buffer} bytes")
    programs = MAX_PROGRAMS if target.kind == "cuda" else target.vector_cores
    return RoutingPlan(min(tokens, programs), rows, size, 1 if rows * size <= 512 else 4)
