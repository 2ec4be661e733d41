"""How rows are quantised: a row whole if it fits, else its maximum first and then its values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascend_kernels.launch import MAX_PROGRAMS, next_power_of_two, previous_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class QuantPlan:
    """A launch over rows.

    Attributes:
        programs: size of the grid; each takes every ``programs``-th row.
        block: columns at a time, a power of two.
        one_pass: that is a whole row; otherwise a row is read twice.
        warps: on CUDA.
        multibuffer: on Ascend, whether the next tile is transferred while one is computed.
    """

    programs: int
    block: int
    one_pass: bool
    warps: int
    multibuffer: bool


@lru_cache(maxsize=4096)
def plan_quant(target: Target, rows: int, columns: int, transfer_bytes: int, value_bytes: int) -> QuantPlan:
    """The plan for ``rows`` rows of ``columns`` results.

    Args:
        target: the device.
        rows: number of rows.
        columns: results of a row.
        transfer_bytes: bytes per result of everything that is read or written.
        value_bytes: bytes per result of what is kept on chip beside it.
    """
    block = next_power_of_two(columns)
    if target.kind == "cuda":
        one_pass = block <= 32768
        block = min(block, 32768)
        warps = min(max(previous_power_of_two(block * transfer_bytes // 4096), 2), 16)
        return QuantPlan(min(rows, MAX_PROGRAMS), block, one_pass, warps, True)
    double = previous_power_of_two(target.unified_buffer // (2 * transfer_bytes + value_bytes))
    single = previous_power_of_two(target.unified_buffer // (transfer_bytes + value_bytes))
    multibuffer = block <= double or block > single
    elements = double if multibuffer else single
    return QuantPlan(
        min(rows, target.vector_cores), min(block, elements), block <= elements, warps=4, multibuffer=multibuffer
    )
