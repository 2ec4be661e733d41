"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """``tasks`` pieces of ``block`` elements over ``programs`` programs; a slot has ``pieces``."""

    tasks: int
    programs: int
    pieces: int
    block: int


def plan_state_copy(copies: int, elements: int, element: int, target: Target) -> CopyPlan:
    """One tile at a time, double-buffered in a quarter of the unified buffer."""
    most = 8192 if target.kind == "cuda" else target.unified_buffer // (8 * element)
    block = min(next_power_of_two(elements), next_power_of_two(most + 1) // 2)
    pieces = ceil_div(elements, block)
    tasks = copies * pieces
    return CopyPlan(tasks, min(tasks, MAX_PROGRAMS if target.kind == "cuda" else target.vector_cores), pieces, block)
