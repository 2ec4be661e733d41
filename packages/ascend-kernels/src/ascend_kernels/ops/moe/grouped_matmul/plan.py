"""How the products of experts are cut into tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.ops.fla.chunk_index.plan import most_chunks
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class GroupedPlan:
    """``tasks`` tiles of ``rows`` x ``columns`` results over ``programs`` programs, ``depth`` elements of sums at once.

    Attributes:
        slices: tiles side by side.
        warps: on CUDA, and ``stages`` too.
    """

    programs: int
    tasks: int
    rows: int
    columns: int
    depth: int
    slices: int
    warps: int
    stages: int


@lru_cache(maxsize=4096)
def plan_grouped(target: Target, rows: int, experts: int, columns: int, depth: int, group: int) -> GroupedPlan:
    """The plan for results of ``columns`` columns, each a sum of ``depth`` products.

    Args:
        target: the device.
        rows: of all experts together.
        experts: how many.
        columns: of the result, or of each half of the weight that SwiGLU combines.
        depth: elements of the sum that one operand holds.
        group: elements of a sum that share a scale; 0 for all.
    """
    ascend = target.kind == "ascend"
    # As high as an expert's rows are on average; a tile that is too high multiplies nothing by weights.
    tile_rows = max(16, min(64 if ascend else 128, next_power_of_two(ceil_div(rows, max(experts, 1)))))
    tile_columns = max(16, min(128, next_power_of_two(columns)))
    tile_depth = max(16, min(128 if ascend else 64, next_power_of_two(depth)))
    while group and group % tile_depth:
        tile_depth //= 2
    slices = ceil_div(columns, tile_columns)
    tasks = most_chunks(experts, rows, tile_rows) * slices
    programs = min(tasks, target.cube_cores if ascend else MAX_PROGRAMS)
    return GroupedPlan(
        programs,
        tasks,
        tile_rows,
        tile_columns,
        tile_depth,
        slices,
        warps=4,
        stages=1 if ascend else 3,
    )
