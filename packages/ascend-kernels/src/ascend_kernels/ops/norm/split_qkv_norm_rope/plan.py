"""How rows of query, key and value are taken apart: some heads of one token at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascend_kernels.launch import MAX_PROGRAMS, next_power_of_two, previous_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A launch over tokens.

    Attributes:
        programs: size of the grid; each takes every ``programs``-th token.
        query_heads: query heads per tile.
        key_heads: key heads per tile.
        half: pairs of a head that turn, padded to a power of two, as all of these are.
        rest: elements of a head that do not turn, padded; at least 1.
        warps: on CUDA.
    """

    programs: int
    query_heads: int
    key_heads: int
    half: int
    rest: int
    warps: int


@lru_cache(maxsize=4096)
def plan_split(
    target: Target, tokens: int, query_heads: int, key_heads: int, size: int, half: int, itemsize: int
) -> SplitPlan:
    """The plan for ``tokens`` tokens with heads of ``size`` elements, the first ``2 * half`` of which turn.

    Raises:
        ValueError: one head alone does not fit on chip.
    """
    width, rest = next_power_of_two(half), next_power_of_two(size - 2 * half)
    if target.kind == "cuda":
        heads = max(1, 4096 // (2 * width + rest))
        programs = MAX_PROGRAMS
    else:
        # Each element is read and written, with two buffers, and kept in fp32 with its weight, its bias and its square.
        heads = target.unified_buffer // ((2 * width + rest) * (4 * itemsize + 4 * 7))
        programs = target.vector_cores
        if heads == 0:
            raise ValueError(f"heads of {size} elements do not fit into {target.unified_buffer} bytes")
    heads = previous_power_of_two(heads)
    query_tile = min(next_power_of_two(query_heads), heads)
    key_tile = min(next_power_of_two(key_heads), heads)
    return SplitPlan(min(tokens, programs), query_tile, key_tile, width, rest, 4)
