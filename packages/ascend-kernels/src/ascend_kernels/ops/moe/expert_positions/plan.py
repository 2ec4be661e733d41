"""How assignments are counted and ranked: in blocks, all experts side by side."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.target import Target

BLOCK = 64
"""Assignments whose order among each other is found by comparing all pairs."""


@dataclass(frozen=True, slots=True)
class PositionPlan:
    """``counters`` programs over the experts, ``tile`` blocks at a time, then ``rankers`` programs over ``blocks``.

    ``gather``: an assignment's expert is looked up; else it is compared with all of them.
    """

    blocks: int
    tile: int
    counters: int
    rankers: int
    warps: int
    gather: bool


def plan_positions(target: Target, assignments: int, experts: int) -> PositionPlan:
    """On Ascend 64 x 64 numbers of 32 bits, four of which fit on chip twice over.

    A program of the first kernel waits for one tile after another: on CUDA tiles are as large as registers allow.
    """
    cuda = target.kind == "cuda"
    programs = MAX_PROGRAMS if cuda else target.vector_cores
    blocks = ceil_div(assignments, BLOCK)
    tile = max(1, min(128, next_power_of_two(blocks))) if cuda else 16
    return PositionPlan(
        blocks, tile, min(experts, programs), min(blocks, programs), 16 if tile > 64 else 4, gather=cuda
    )
