"""How runs of bytes are handed to programs: their lengths are known to the device alone."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.ops.memory.segments.plan import tile_elements
from ascend_kernels.target import Target

SHARES = 64
"""Most programs that share a copy."""


@dataclass(frozen=True, slots=True)
class MemcpyPlan:
    """``tasks`` are ``shares`` of every copy, over ``programs`` programs; a tile has ``block`` words or bytes."""

    programs: int
    tasks: int
    shares: int
    block: int


def plan_memcpy(target: Target, copies: int) -> MemcpyPlan:
    """As many shares of each copy as keep all cores busy; on CUDA eight times that."""
    cuda = target.kind == "cuda"
    shares = max(1, min(ceil_div((8 if cuda else 1) * target.vector_cores, copies), SHARES))
    tasks = copies * shares
    block = next_power_of_two(tile_elements(target, 8) + 1) // 2
    return MemcpyPlan(min(tasks, MAX_PROGRAMS if cuda else target.vector_cores), tasks, shares, block)
