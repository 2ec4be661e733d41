"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, next_power_of_two, previous_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class RecurrentPlan:
    """At most ``programs`` programs; each keeps key channels x ``block_v`` of a state on chip."""

    programs: int
    block_v: int
    warps: int
    evict: str


def plan_recurrent_delta_rule(rows: int, key_dim: int, value_dim: int, target: Target) -> RecurrentPlan:
    """Slices of the value channels are independent, so their width is free.

    Args:
        rows: sequences x heads.
        key_dim: key channels.
        value_dim: value channels.
        target: the device.
    """
    keys = next_power_of_two(key_dim)
    values = next_power_of_two(value_dim)
    if target.kind == "ascend":
        # A float32 state and two temporaries of its size, each double-buffered, within the unified buffer.
        widest = previous_power_of_two(target.unified_buffer // (6 * 4 * keys))
        return RecurrentPlan(target.vector_cores, min(values, widest), warps=4, evict="")
    block_v = min(values, 64)
    # Kept in the cache to the last: a line is written soon after it was read (on an H200, 256 x 32 states: 2 %).
    return RecurrentPlan(MAX_PROGRAMS, block_v, warps=2 if keys * block_v >= 4096 else 1, evict="evict_last")
