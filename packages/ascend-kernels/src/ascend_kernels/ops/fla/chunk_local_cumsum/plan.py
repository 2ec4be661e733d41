"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class CumsumPlan:
    """``tasks`` = chunks x ``slices`` of ``block`` channels, over ``programs`` programs."""

    tasks: int
    programs: int
    slices: int
    block: int
    warps: int


def plan_chunk_local_cumsum(chunks: int, channels: int, chunk: int, target: Target) -> CumsumPlan:
    """On Ascend three float32 tiles share the unified buffer: 16 KiB each leaves room for double buffering."""
    block = min(next_power_of_two(channels), 64)
    slices = ceil_div(channels, block)
    tasks = chunks * slices
    programs = min(tasks, MAX_PROGRAMS if target.kind == "cuda" else target.vector_cores)
    return CumsumPlan(tasks, programs, slices, block, warps=4 if block >= 32 else 1)
