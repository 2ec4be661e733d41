"""How rows as long as a vocabulary are shared among programs: a row belongs to one program, a block at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascend_kernels.launch import MAX_PROGRAMS, next_power_of_two, previous_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class VocabPlan:
    """A launch over rows.

    Attributes:
        programs: size of the grid; each takes every ``programs``-th row.
        block: columns at a time, a power of two.
        warps: on CUDA.
    """

    programs: int
    block: int
    warps: int


@lru_cache(maxsize=4096)
def plan_vocab(target: Target, rows: int, vocab: int, lane_bytes: int, *, persistent: bool = False) -> VocabPlan:
    """The plan for ``rows`` rows of ``vocab`` columns.

    The block depends on the vocabulary alone, so that a row's result does not depend on the rows beside it.

    Args:
        target: the device.
        rows: number of rows.
        vocab: columns of a row.
        lane_bytes: bytes of the unified buffer that a kernel needs per column of a block.
        persistent: on CUDA, start no more programs than run at once: a row that is read again is then still in the
            cache.
    """
    block = next_power_of_two(vocab)
    if target.kind == "cuda":
        # Four values a thread, so that many threads run at once; rows that are read twice in larger pieces.
        block = min(block, 8192 if persistent else 2048)
        warps = min(max(block // (512 if persistent else 128), 1), 16)
        return VocabPlan(min(rows, 2 * target.vector_cores if persistent else MAX_PROGRAMS), block, warps)
    block = min(block, previous_power_of_two(target.unified_buffer // lane_bytes))
    return VocabPlan(min(rows, target.vector_cores), block, 4)
