"""How the kernel is launched."""

from __future__ import annotations

from ascend_kernels.launch import MAX_PROGRAMS, Plan, ceil_div

BLOCKS = (64, 1024)
"""Rows per program: few sizes, so that few kernels are compiled. Nine int32 vectors of the larger one stay far below
the unified buffer's 192 KiB."""


def plan_decode_inputs(rows: int) -> Plan:
    """As few programs as the block sizes allow; the batch of a decode step usually fits one."""
    block = next((block for block in BLOCKS if rows <= block), BLOCKS[-1])
    programs = ceil_div(rows, block)
    if programs > MAX_PROGRAMS:
        raise ValueError(f"{rows} rows need {programs} programs of {block} rows; at most {MAX_PROGRAMS} are possible")
    return Plan(programs, block)
