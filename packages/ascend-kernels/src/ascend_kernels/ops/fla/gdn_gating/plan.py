"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.target import Target

TILE = 2048
"""Elements of a tile; about ten float32 tiles of this size live at once, 80 KiB."""


@dataclass(frozen=True, slots=True)
class GatingPlan:
    """``tasks`` tiles of ``rows`` tokens and all ``block`` heads over ``programs`` programs."""

    tasks: int
    programs: int
    rows: int
    block: int


def plan_gdn_gating(tokens: int, heads: int, target: Target) -> GatingPlan:
    """Few heads, many tokens: a tile is as many whole rows as fit."""
    block = next_power_of_two(heads)
    rows = max(1, TILE // block)
    if target.kind == "cuda":
        rows = min(rows, 16)
    tasks = ceil_div(tokens, rows)
    programs = min(tasks, MAX_PROGRAMS if target.kind == "cuda" else target.vector_cores)
    return GatingPlan(tasks, programs, rows, block)
