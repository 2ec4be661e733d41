"""How assignments are counted and ranked: in blocks, all experts side by side."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div
from ascend_kernels.target import Target

BLOCK = 64
"""Assignments whose order among each other is found by comparing all pairs."""
TILE = 16
"""Blocks that are counted at a time, and experts that are compared with a block at a time (times four)."""


@dataclass(frozen=True, slots=True)
class PositionPlan:
    """``counters`` programs over the experts, then ``rankers`` programs over ``blocks`` blocks."""

    blocks: int
    counters: int
    rankers: int


def plan_positions(target: Target, assignments: int, experts: int) -> PositionPlan:
    """Tiles are of one size: 64 x 64 numbers of 32 bits, four of which fit on chip twice over."""
    programs = MAX_PROGRAMS if target.kind == "cuda" else target.vector_cores
    blocks = ceil_div(assignments, BLOCK)
    return PositionPlan(blocks, min(experts, programs), min(blocks, programs))
