"""How rows are reduced: one at a time, in pieces whose size follows from the row's length alone."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import next_power_of_two, previous_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class RowsPlan:
    """``programs`` programs over the rows; ``block`` elements at a time, a power of two; ``warps`` on CUDA."""

    programs: int
    block: int
    warps: int


def plan_invariant_rows(target: Target, rows: int, columns: int, itemsize: int) -> RowsPlan:
    """Two buffers read and written, and five numbers in fp32 for each element, fit on chip."""
    if target.kind == "cuda":
        # No more programs than run at once, so that a row that is read again is still in the cache.
        block = min(next_power_of_two(columns), 8192)
        return RowsPlan(min(rows, 2 * target.vector_cores), block, min(max(block // 512, 1), 16))
    most = previous_power_of_two(target.unified_buffer // (4 * itemsize + 20))
    return RowsPlan(min(rows, target.vector_cores), min(next_power_of_two(columns), most), 4)
