"""How the kernels are launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import product_block
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class LightningPlan:
    """At most ``programs`` programs, each a segment of ``segment`` tokens of one head, ``chunk`` tokens at a time.

    The ``partial`` numbers are those of the first pass, which sums up what each segment adds.
    """

    programs: int
    segment: int
    chunk: int
    block_v: int
    warps: int
    stages: int
    partial_block_v: int
    partial_warps: int
    partial_stages: int


def plan_lightning_attention(tokens: int, sequences: int, heads: int, value_dim: int, target: Target) -> LightningPlan:
    """Segments are as long as they can be with every processor busy: its start sums up all segments before it."""
    if target.kind == "ascend":
        programs, block_v, chunk, warps, stages = target.cube_cores, 64, 64, 4, 1
    else:
        programs, block_v, chunk, warps, stages = MAX_PROGRAMS, product_block(value_dim, 64), 64, 4, 3
    slices = -(-value_dim // block_v)
    segment = 8192
    while segment > 4 * chunk and (tokens // segment + sequences) * heads * slices < 3 * target.cube_cores:
        segment //= 2
    return LightningPlan(
        programs,
        segment,
        chunk,
        block_v,
        warps,
        stages,
        partial_block_v=block_v if target.kind == "ascend" else product_block(value_dim, 128),
        partial_warps=4,
        partial_stages=1 if target.kind == "ascend" else 3,
    )
