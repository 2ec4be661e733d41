"""How pieces of memory are handed to programs."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """``pieces`` of ``block`` elements cover the longest segment; ``programs`` share the pieces of all segments."""

    programs: int
    tasks: int
    pieces: int
    block: int


def tile_elements(target: Target, element: int) -> int:
    """Elements of a tile: with double buffering a quarter of the unified buffer; 8 KiB on CUDA."""
    return (8192 if target.kind == "cuda" else target.unified_buffer // 6) // element


def plan_segments(target: Target, segments: int, elements: int, element: int) -> SegmentPlan:
    """The plan for ``segments`` runs of up to ``elements`` elements of ``element`` bytes."""
    block = min(next_power_of_two(elements), next_power_of_two(tile_elements(target, element) + 1) // 2)
    pieces = ceil_div(elements, block)
    tasks = segments * pieces
    return SegmentPlan(min(tasks, MAX_PROGRAMS if target.kind == "cuda" else target.vector_cores), tasks, pieces, block)
