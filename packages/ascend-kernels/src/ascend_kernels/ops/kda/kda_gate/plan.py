"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class KdaGatePlan:
    """``tasks`` tiles of ``rows`` tokens of one head over ``programs`` programs; a head is ``block`` channels wide."""

    tasks: int
    programs: int
    rows: int
    block: int


def plan_kda_gate(tokens: int, heads: int, channels: int, target: Target) -> KdaGatePlan:
    """About eight float32 tiles of 2048 elements live at once, 64 KiB."""
    block = next_power_of_two(channels)
    rows = max(1, 2048 // block)
    tasks = ceil_div(tokens, rows) * heads
    programs = min(tasks, MAX_PROGRAMS if target.kind == "cuda" else target.vector_cores)
    return KdaGatePlan(tasks, programs, rows, block)
