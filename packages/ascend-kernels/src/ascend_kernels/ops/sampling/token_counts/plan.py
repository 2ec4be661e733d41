"""How tokens are shared among programs."""

from __future__ import annotations

from ascend_kernels.launch import MAX_PROGRAMS, Plan, ceil_div, next_power_of_two
from ascend_kernels.target import Target


def plan_token_counts(target: Target, rows: int, length: int) -> Plan:
    """Tiles of one row's tokens, as many at a time as programs run at once."""
    block = min(next_power_of_two(length), 1024)
    tiles = rows * ceil_div(length, block) if length else 0
    return Plan(min(tiles, target.vector_cores if target.kind == "ascend" else MAX_PROGRAMS), block)
