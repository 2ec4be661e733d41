"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """``tasks`` tiles of ``rows`` tokens of one key head over ``programs`` programs."""

    tasks: int
    programs: int
    rows: int


def plan_qkvzba_split(tokens: int, key_heads: int, widest: int, element: int, target: Target) -> SplitPlan:
    """Tiles of the widest part of a key head, four of them at once and double-buffered, within the unified buffer.

    Args:
        tokens: rows.
        key_heads: key heads.
        widest: channels of the widest part.
        element: bytes per channel.
        target: the device.
    """
    width = next_power_of_two(widest)
    if target.kind == "cuda":
        rows, most = max(1, 2048 // width), MAX_PROGRAMS
    else:
        rows, most = max(1, target.unified_buffer // (8 * width * element)), target.vector_cores
        rows = next_power_of_two(rows + 1) // 2
    tasks = ceil_div(tokens, rows) * key_heads
    return SplitPlan(tasks, min(tasks, most), rows)
