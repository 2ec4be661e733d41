"""How masks are applied: some words of one row's mask at a time."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class BitmaskPlan:
    """``tasks`` pieces of ``words`` words of a mask over ``programs`` programs; a row has ``pieces``."""

    programs: int
    tasks: int
    pieces: int
    words: int


def plan_bitmask(target: Target, rows: int, words: int) -> BitmaskPlan:
    """At most 2,048 logits at a time: their bits take a 32-bit integer each, several times over."""
    tile = min(next_power_of_two(words), 64)
    pieces = ceil_div(words, tile)
    tasks = rows * pieces
    return BitmaskPlan(min(tasks, MAX_PROGRAMS if target.kind == "cuda" else target.vector_cores), tasks, pieces, tile)
