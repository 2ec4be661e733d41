"""How parts are merged: some rows (a token's heads one after another) at a time."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two, previous_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class MergePlan:
    """``programs`` programs share tiles of ``rows`` rows; ``block`` is a row's length, a power of two."""

    programs: int
    tiles: int
    rows: int
    block: int


def plan_merge(target: Target, rows: int, size: int, itemsize: int) -> MergePlan:
    """Two buffers read and written, and a part, its product and the sum in fp32, fit on chip.

    Raises:
        ValueError: one row does not fit.
    """
    block = next_power_of_two(size)
    ascend = target.kind == "ascend"
    elements = target.unified_buffer // (4 * itemsize + 20) if ascend else 4096
    if ascend and block > elements:
        raise ValueError(f"heads of {size} elements do not fit into {target.unified_buffer} bytes")
    share = ceil_div(rows, target.vector_cores)
    tile = max(1, min(previous_power_of_two(elements) // block, next_power_of_two(share), 64))
    tiles = ceil_div(rows, tile)
    return MergePlan(min(tiles, target.vector_cores if ascend else MAX_PROGRAMS), tiles, tile, block)
