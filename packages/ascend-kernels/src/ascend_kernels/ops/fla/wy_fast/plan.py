"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import product_block
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class WyPlan:
    """One program per chunk and value head, striding; ``block_k`` and ``block_v`` channels at a time."""

    programs: int
    block_k: int
    block_v: int
    warps: int


def plan_wy_fast(tasks: int, key_dim: int, value_dim: int, target: Target) -> WyPlan:
    """On Ascend half the channels at a time, so that tiles of keys and results stay small beside the inverse."""
    cuda = target.kind == "cuda"
    block = 64
    return WyPlan(
        programs=min(tasks, MAX_PROGRAMS if cuda else target.cube_cores),
        block_k=product_block(key_dim, block),
        block_v=product_block(value_dim, block),
        warps=4,
    )
