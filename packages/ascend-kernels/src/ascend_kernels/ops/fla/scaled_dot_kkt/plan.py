"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class KktPlan:
    """One program per chunk and value head, striding; keys are read ``block_k`` channels at a time."""

    programs: int
    block_k: int
    warps: int


def product_block(channels: int, most: int) -> int:
    """Channels of a tile that goes into a matrix product: a power of two, at least 16, at most ``most``."""
    return max(16, min(most, next_power_of_two(channels)))


def plan_scaled_dot_kkt(tasks: int, key_dim: int, target: Target) -> KktPlan:
    """Two float32 tiles of 64 x 64 and one of keys share the unified buffer on Ascend."""
    programs = min(tasks, MAX_PROGRAMS if target.kind == "cuda" else target.cube_cores)
    return KktPlan(programs, product_block(key_dim, 128), warps=4)
