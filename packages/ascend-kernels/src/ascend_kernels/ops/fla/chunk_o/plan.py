"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import product_block
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """At most ``programs`` programs, each one chunk, head and ``block_v`` value channels at a time."""

    programs: int
    block_k: int
    block_v: int
    warps: int
    stages: int


def plan_chunk_o(key_dim: int, value_dim: int, target: Target) -> OutputPlan:
    """On Ascend 64 x 64 tiles; on CUDA half a head's keys at a time, so that more programs find registers."""
    if target.kind == "ascend":
        return OutputPlan(target.cube_cores, 64, 64, warps=4, stages=1)
    block_k, block_v = product_block(key_dim, 64), product_block(value_dim, 128)
    return OutputPlan(MAX_PROGRAMS, block_k, block_v, warps=4, stages=1)
