"""How the kernel is launched."""

from __future__ import annotations

from ascend_kernels.launch import MAX_PROGRAMS, Plan

BLOCK = 1024


def plan_slot_mapping(requests: int, slots: int) -> Plan:
    """One program per request and one for the padding behind the last token, each striding over its tokens."""
    if slots == 0:
        return Plan(0, BLOCK)
    return Plan(min(requests + 1, MAX_PROGRAMS), BLOCK)
