"""How rows are truncated: a search among the largest values of every lane first, among all values where that fails."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascend_kernels.launch import next_power_of_two
from ascend_kernels.target import Target

DEPTH = 3
"""Values that a lane keeps."""


@dataclass(frozen=True, slots=True)
class TruncationPlan:
    """A launch over rows.

    Attributes:
        programs: size of the grid; each takes every ``programs``-th row.
        block: columns at a time, a power of two, and lanes that keep values.
        exhaustive: lanes are so many that they cannot lose a value: no row needs a search among all values.
        warps: on CUDA.
    """

    programs: int
    block: int
    exhaustive: bool
    warps: int


@lru_cache(maxsize=4096)
def plan_truncation(target: Target, rows: int, vocab: int) -> TruncationPlan:
    """The plan for ``rows`` rows of ``vocab`` columns.

    A row's block depends on the vocabulary alone. On CUDA no more programs start than run at once, so that a row that
    is read again is still in the cache.
    """
    block = next_power_of_two(vocab)
    if target.kind == "cuda":
        block = min(block, 8192)
        return TruncationPlan(
            min(rows, target.vector_cores), block, block * DEPTH >= vocab, min(max(block // 256, 1), 32)
        )
    block = min(block, target.unified_buffer // LANE_BYTES)
    block = 1 << (block.bit_length() - 1)
    return TruncationPlan(min(rows, target.vector_cores), block, block * DEPTH >= vocab, 4)


LANE_BYTES = 80
"""On an NPU, per column: two buffers of logits in and out, what lanes keep, and what one step computes."""
