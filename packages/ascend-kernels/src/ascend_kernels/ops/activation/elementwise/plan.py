"""How elementwise kernels are launched: tiles of rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two, previous_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class TilePlan:
    """A launch over tiles of a matrix.

    Attributes:
        programs: size of the grid; each takes every ``programs``-th tile.
        rows: rows per tile.
        block: columns per tile; both are powers of two.
        warps: on CUDA.
    """

    programs: int
    rows: int
    block: int
    warps: int


@lru_cache(maxsize=4096)
def plan_tiles(target: Target, rows: int, columns: int, transfer_bytes: int, value_bytes: int) -> TilePlan:
    """The plan for a matrix of ``rows × columns`` results.

    Args:
        target: the device.
        rows: rows of the result.
        columns: columns of the result.
        transfer_bytes: bytes per result of everything that is read or written; on Ascend it has two buffers.
        value_bytes: bytes per result of what is kept on chip beside it.
    """
    if target.kind == "cuda":
        elements = 2048
        limit = MAX_PROGRAMS
    else:
        elements = previous_power_of_two(target.unified_buffer // (2 * transfer_bytes + value_bytes))
        limit = target.vector_cores
        # Tiles small enough that every core has one.
        elements = min(elements, max(next_power_of_two(ceil_div(rows * columns, target.vector_cores)), 256))
    block = min(next_power_of_two(columns), elements)
    tile_rows = min(elements // block, next_power_of_two(rows))
    tiles = ceil_div(rows, tile_rows) * ceil_div(columns, block)
    return TilePlan(min(tiles, limit), tile_rows, block, 4)
