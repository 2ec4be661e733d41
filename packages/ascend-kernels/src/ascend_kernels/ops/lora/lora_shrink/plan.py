"""How both halves of an adapter are launched: a token and some rows of its matrix at a time."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.target import Target

TILE = 4096
"""Elements of a matrix at a time: twice in its dtype, and three times in fp32, they take 64 KiB."""


@dataclass(frozen=True, slots=True)
class LoraPlan:
    """``tasks`` tasks over ``programs`` programs; a token has ``slices``; a tile is ``rows`` x ``columns`` elements."""

    programs: int
    tasks: int
    slices: int
    rows: int
    columns: int


def plan_lora(target: Target, tokens: int, rows: int, columns: int) -> LoraPlan:
    """The plan for a matrix of ``rows`` x ``columns`` per adapter, whose columns are summed up."""
    tile_columns = min(next_power_of_two(columns), 512)
    tile_rows = min(next_power_of_two(rows), TILE // tile_columns)
    slices = ceil_div(rows, tile_rows)
    tasks = tokens * slices
    programs = min(tasks, MAX_PROGRAMS if target.kind == "cuda" else target.vector_cores)
    return LoraPlan(programs, tasks, slices, tile_rows, tile_columns)
