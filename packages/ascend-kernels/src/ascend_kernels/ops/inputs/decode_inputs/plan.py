"""How the kernel is launched."""

from __future__ import annotations

from ascend_kernels.launch import MAX_PROGRAMS, Plan, next_power_of_two

BLOCK = 1024
"""Rows per program at most: nine int32 vectors of this length stay far below the unified buffer's 192 KiB."""


def plan_decode_inputs(rows: int) -> Plan:
    """As few programs as the block size allows; the batch of a decode step usually fits one."""
    if rows == 0:
        return Plan(0, 1)
    block = min(next_power_of_two(rows), BLOCK)
    programs = -(-rows // block)
    if programs > MAX_PROGRAMS:
        raise ValueError(f"{rows} rows need {programs} programs of {block} rows; at most {MAX_PROGRAMS} are possible")
    return Plan(programs, block)
