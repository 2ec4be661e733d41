"""How the keys of each row are split over programs."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div
from ascend_kernels.target import Target

FEWEST_TILES = 4
"""Tiles of keys that a split has at least, if it has the longest sequence: fewer do not pay for the merge."""
MOST_SPLITS = 32


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """``tasks`` (a row's heads that share keys, a split of its keys) over ``programs`` programs."""

    programs: int
    tasks: int
    pieces: int
    splits: int


def plan_splits(target: Target, rows: int, kv_heads: int, group: int, tile_rows: int, most_tiles: int) -> SplitPlan:
    """As many splits as keep all cores busy; on CUDA twice that.

    Args:
        target: the device.
        rows: of the batch.
        kv_heads: heads of keys.
        group: heads of queries for each.
        tile_rows: heads that a program takes at once.
        most_tiles: tiles of the longest sequence that the block table has room for.
    """
    cuda = target.kind == "cuda"
    pieces = ceil_div(group, tile_rows)
    work = rows * kv_heads * pieces
    # Rounded down: a program too many would have all others wait for a second round.
    wanted = (2 if cuda else 1) * target.cube_cores // work
    splits = max(1, min(wanted, ceil_div(most_tiles, FEWEST_TILES), MOST_SPLITS))
    tasks = work * splits
    return SplitPlan(min(tasks, MAX_PROGRAMS if cuda else target.cube_cores), tasks, pieces, splits)
