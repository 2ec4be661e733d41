# SPDX-License-Identifier: Apache-2.0
"""Groups of rows of the grouped products."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ascend_sim.references import limits


def group_ranges(op: str, group_list: Tensor | Sequence[int], kind: int, size: int) -> list[tuple[int, int, int]]:
    """(group, first row, end) of the groups that have rows.

    ``kind`` 0: running sums; 1: rows of each group; 2: pairs of group and rows, up to the first without rows.
    """
    numbers = group_list.tolist() if isinstance(group_list, Tensor) else list(group_list)
    if kind == 2:
        pairs = []
        for group, count in numbers:
            if count <= 0:
                break
            pairs.append((group, count))
    elif kind == 1:
        pairs = list(enumerate(numbers))
    elif kind == 0:
        pairs = [(i, end - start) for i, (start, end) in enumerate(zip([0, *numbers[:-1]], numbers, strict=True))]
    else:
        raise limits.refuse(op, "group_list_type", kind, "0, 1 or 2")
    ranges, start = [], 0
    for group, count in pairs:
        if count < 0 or start + count > size:
            raise limits.refuse(op, "group_list", numbers, f"rows that add up to at most {size}")
        if count:
            ranges.append((group, start, start + count))
        start += count
    return ranges
