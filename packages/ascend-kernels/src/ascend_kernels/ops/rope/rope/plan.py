"""How heads are turned: a token at a time, as many of its heads as fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascend_kernels.launch import MAX_PROGRAMS, next_power_of_two, previous_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class RopePlan:
    """A launch over tokens.

    Attributes:
        programs: size of the grid; each takes every ``programs``-th token.
        query_heads: query heads per tile.
        key_heads: key heads per tile.
        half: pairs of a head, padded to a power of two, as all of these are.
        warps: on CUDA.
    """

    programs: int
    query_heads: int
    key_heads: int
    half: int
    warps: int


@lru_cache(maxsize=4096)
def plan_rope(
    target: Target, tokens: int, query_heads: int, key_heads: int, half: int, itemsize: int, interleaved: bool
) -> RopePlan:
    """The plan for ``tokens`` tokens whose heads have ``2 * half`` turned elements of ``itemsize`` bytes.

    Raises:
        ValueError: one head alone does not fit on chip.
    """
    width = next_power_of_two(half)
    if target.kind == "cuda":
        heads = max(1, 4096 // width)
        programs = MAX_PROGRAMS
    else:
        # Both elements of a pair are read and written, with two buffers, and kept in fp32 before and after; elements
        # that alternate take more when they are taken apart.
        pair_bytes = 2 * 4 * itemsize + 4 * 6 + (96 if interleaved else 0)
        heads = target.unified_buffer // (pair_bytes * width)
        programs = target.vector_cores
        if heads == 0:
            raise ValueError(f"heads with {2 * half} turned elements do not fit into {target.unified_buffer} bytes")
    heads = previous_power_of_two(heads)
    query_tile = min(next_power_of_two(query_heads), heads)
    key_tile = min(next_power_of_two(key_heads), heads)
    return RopePlan(min(tokens, programs), query_tile, key_tile, width, 4)
