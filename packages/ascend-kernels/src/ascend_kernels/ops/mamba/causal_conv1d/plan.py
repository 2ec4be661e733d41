"""How the kernels are launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class ConvPlan:
    """At most ``programs`` programs, each a run of ``rows`` tokens of ``block`` channels.

    Windows are written ``window_block`` channels at a time.
    """

    programs: int
    rows: int
    block: int
    window_block: int
    warps: int


def plan_causal_conv1d(tokens: int, channels: int, target: Target) -> ConvPlan:
    """On Ascend a row of 1,024 channels is 4 KiB in float32, and about twenty of them live at once.

    Three rows before a run are read again: a run is long, but short enough for every core to have one.
    """
    if target.kind == "ascend":
        block = min(1024, next_power_of_two(channels))
        rows = 256
        while rows > 32 and tokens * channels < rows * block * target.vector_cores:
            rows //= 2
        return ConvPlan(target.vector_cores, rows, block, 512, warps=4)
    return ConvPlan(MAX_PROGRAMS, 128, min(128, next_power_of_two(channels)), 256, warps=1)
