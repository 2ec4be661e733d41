"""How rows are summed up: one row at a time, in pieces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascend_kernels.launch import MAX_PROGRAMS, next_power_of_two, previous_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class SquarePlan:
    """``programs`` programs over the rows; ``q_block`` and ``k_block`` columns at a time, powers of two."""

    programs: int
    q_block: int
    k_block: int


@lru_cache(maxsize=4096)
def plan_squares(target: Target, tokens: int, q_columns: int, k_columns: int, itemsize: int) -> SquarePlan:
    """Two buffers of a piece, the piece in fp32, its square and the sums fit on chip."""
    most = 4096
    if target.kind == "ascend":
        most = previous_power_of_two(target.unified_buffer // (2 * itemsize + 4 * 4) // 2)
    programs = MAX_PROGRAMS if target.kind == "cuda" else target.vector_cores
    return SquarePlan(
        min(tokens, programs), min(next_power_of_two(q_columns), most), min(next_power_of_two(k_columns), most)
    )
