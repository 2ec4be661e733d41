"""How products are cut into tiles: by their columns and depth alone, never by the number of rows."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class InvariantPlan:
    """``tasks`` tiles of ``rows`` x ``columns`` over ``programs`` programs, ``depth`` elements of a sum at a time.

    Attributes:
        high: tiles on top of each other in one product.
        wide: tiles side by side.
        warps: on CUDA, and ``stages`` too.
    """

    programs: int
    tasks: int
    rows: int
    columns: int
    depth: int
    high: int
    wide: int
    warps: int
    stages: int


def plan_invariant(target: Target, batches: int, rows: int, columns: int, itemsize: int) -> InvariantPlan:
    """One tile shape for each target and size of element: it decides the order of a sum's parts."""
    ascend = target.kind == "ascend"
    tile_rows, tile_columns, depth = (64, 128, 128 // itemsize) if ascend or itemsize > 2 else (128, 256, 64)
    high, wide = ceil_div(rows, tile_rows), ceil_div(columns, tile_columns)
    tasks = batches * high * wide
    programs = min(tasks, target.cube_cores if ascend else MAX_PROGRAMS)
    return InvariantPlan(
        programs, tasks, tile_rows, tile_columns, depth, high, wide, warps=8 if itemsize <= 2 else 4,
        stages=1 if ascend else 3,
    )  # fmt: skip
