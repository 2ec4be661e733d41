"""How rows are normalised: tiles of whole rows, or chunks of one row where a row does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two, previous_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class RowPlan:
    """A launch over ``outer × inner`` rows.

    Attributes:
        programs: size of the grid; each takes every ``programs``-th tile.
        rows: inner rows per tile.
        block: columns per tile, a power of two.
        one_pass: a tile holds whole rows; otherwise a row is read twice, ``block`` columns at a time.
        warps: on CUDA.
        multibuffer: on Ascend, whether the next tile is transferred while one is computed.
        hoist: the weight is read before the first tile and stays on chip; otherwise it is read for every tile, from
            the cache, and holds no registers while sums are formed.
    """

    programs: int
    rows: int
    block: int
    one_pass: bool
    warps: int
    multibuffer: bool = True
    hoist: bool = True


@lru_cache(maxsize=4096)
def plan_rows(
    target: Target, outer: int, inner: int, columns: int, transfer_bytes: int, value_bytes: int, per_group: bool
) -> RowPlan:
    """The plan for ``outer × inner`` rows of ``columns`` elements.

    Args:
        target: the device.
        outer: groups of rows.
        inner: rows per group.
        columns: elements of a row.
        transfer_bytes: bytes per element of all tensors that are read or written.
        value_bytes: bytes per element of what is kept on chip beside them.
        per_group: whether groups have weights of their own; a program then stays within one group.
    """
    block = next_power_of_two(columns)
    if target.kind == "cuda":
        one_pass = block <= 32768
        block = min(block, 32768)
        rows = max(1, min(2048 // block, next_power_of_two(inner)))
        programs = _programs(outer, ceil_div(inner, rows), MAX_PROGRAMS, per_group)
        warps = min(max(block // 2048, 4), 16)
        return RowPlan(programs, rows, block, one_pass, warps, hoist=False)
    # With two buffers for every tensor a core transfers and computes at once. A row that does not fit so but fits
    # with one is still better read once than twice.
    double = previous_power_of_two(target.unified_buffer // (2 * transfer_bytes + value_bytes))
    single = previous_power_of_two(target.unified_buffer // (transfer_bytes + value_bytes))
    multibuffer = block <= double or block > single
    elements = double if multibuffer else single
    one_pass = block <= elements
    block = min(block, elements)
    # No more rows per tile than leave every core a tile.
    share = ceil_div(outer * inner, target.vector_cores)
    rows = max(1, min(elements // block, next_power_of_two(share), next_power_of_two(inner), 256))
    programs = _programs(outer, ceil_div(inner, rows), target.vector_cores, per_group)
    return RowPlan(programs, rows, block, one_pass, 4, multibuffer)


def _programs(outer: int, tiles: int, limit: int, per_group: bool) -> int:
    """How many programs share ``outer`` groups of ``tiles`` tiles; a multiple of ``outer`` if none may span two."""
    if per_group:
        if outer > MAX_PROGRAMS:
            raise ValueError(f"{outer} groups with weights of their own; at most {MAX_PROGRAMS} are possible")
        return outer * min(tiles, max(limit // outer, 1))
    return min(outer * tiles, limit)
