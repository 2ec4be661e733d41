"""How requests are shared among programs."""

from __future__ import annotations

from ascend_kernels.launch import MAX_PROGRAMS, Plan, next_power_of_two
from ascend_kernels.target import Target


def plan_rejection(target: Target, requests: int, candidates: int) -> Plan:
    """A program verifies the drafts of whole requests; candidates of a row are compared up to 1,024 at a time."""
    limit = target.vector_cores if target.kind == "ascend" else MAX_PROGRAMS
    return Plan(min(requests, limit), min(next_power_of_two(candidates), 1024))
