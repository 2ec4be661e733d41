"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import product_block
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class DeltaHPlan:
    """At most ``programs`` programs; each walks a sequence with a state of key channels x ``block_v`` on chip."""

    programs: int
    block_v: int
    warps: int
    stages: int


def plan_chunk_delta_h(rows: int, key_dim: int, value_dim: int, target: Target) -> DeltaHPlan:
    """The walk is sequential: value channels are split further while processors would idle.

    Args:
        rows: sequences x heads.
        key_dim: key channels.
        value_dim: value channels.
        target: the device.
    """
    if target.kind == "ascend":
        # State 128 x 32 in float32 and half precision, the product's result, and 64 x 128 tiles of w and k: 104 KiB.
        return DeltaHPlan(target.cube_cores, 32, warps=4, stages=1)
    block_v = product_block(value_dim, 64)
    while block_v > 16 and rows * (value_dim // block_v) < target.cube_cores // 2:
        block_v //= 2
    stages = 3 if key_dim <= 128 else 2
    return DeltaHPlan(MAX_PROGRAMS, block_v, warps=4, stages=stages)
