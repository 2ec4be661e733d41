"""How rows are moved: a piece of one token's row at a time."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, next_power_of_two, previous_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class RowsPlan:
    """``programs`` programs over the tokens; ``block`` columns at a time, a power of two."""

    programs: int
    block: int
    warps: int


def plan_rows_of_tokens(target: Target, tokens: int, columns: int, bytes_per_column: int) -> RowsPlan:
    """Two buffers for what is moved, and room for what is computed: ``bytes_per_column`` for both together."""
    most = 8192 if target.kind == "cuda" else previous_power_of_two(target.unified_buffer // bytes_per_column)
    programs = MAX_PROGRAMS if target.kind == "cuda" else target.vector_cores
    return RowsPlan(min(tokens, programs), min(next_power_of_two(columns), most), 4)
