"""How the kernels are launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class ConvPlan:
    """At most ``programs`` programs; tiles of ``rows`` tokens x ``block`` channels, ``repeats`` in a row.

    Windows are written ``window_block`` channels at a time.
    """

    programs: int
    rows: int
    repeats: int
    block: int
    window_block: int
    warps: int
    stages: int


def plan_causal_conv1d(tokens: int, channels: int, target: Target) -> ConvPlan:
    """On Ascend a float32 tile of 16 x 256 is 16 KiB, and about five of them live at once."""
    if target.kind == "ascend":
        return ConvPlan(target.vector_cores, 16, 16, min(256, next_power_of_two(channels)), 512, warps=4, stages=1)
    return ConvPlan(MAX_PROGRAMS, 16, 8, min(128, next_power_of_two(channels)), 256, warps=4, stages=2)
