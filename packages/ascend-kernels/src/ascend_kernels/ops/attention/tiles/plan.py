"""How many keys and rows a tile of attention has."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ascend_kernels.launch import next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class TilePlan:
    """Tiles of ``rows`` queries and up to ``span`` keys (``keys``: the power of two above).

    Attributes:
        depth: channels of a key, the power of two above.
        width: channels of a value, the power of two above.
        gather: each key's page is looked up by itself, so that a tile may reach over pages.
        warps: on CUDA, and ``stages`` too.
    """

    rows: int
    span: int
    keys: int
    depth: int
    width: int
    gather: bool
    warps: int
    stages: int


def _divisor(number: int, most: int) -> int:
    """The largest divisor of ``number`` that is not above ``most``."""
    return next(divisor for divisor in range(min(number, most), 0, -1) if number % divisor == 0)


def plan_tiles(
    target: Target, rows: int, key_size: int, value_size: int, itemsize: int, page: int, selected: int, quantised: bool
) -> TilePlan:
    """The plan.

    On Ascend the sums of a tile's rows take a sixth of the unified buffer, and a tile's keys lie in one page, because
    an NPU reads rows that lie apart one by one; on CUDA keys and values of all stages fit into shared memory.

    Args:
        target: the device.
        rows: queries that could share keys.
        key_size: channels of a key.
        value_size: channels of a value.
        itemsize: bytes of an element of the query.
        page: tokens of a page of the cache; 0 where keys are laid out.
        selected: tokens of a block that the caller selects; 0 where all keys are read.
        quantised: keys and values are int8.

    Raises:
        ValueError: heads so large that not even 16 rows of sums fit.
    """
    depth, width = (max(16, next_power_of_two(size)) for size in (key_size, value_size))
    if target.kind == "cuda":
        stages = 3 if itemsize == 2 and depth + width <= 256 else 1
        most_rows = max(16, min(128 if itemsize == 2 else 32, 16384 // max(depth, width)))
        most_keys = max(16, min(64, 16384 * 4 // ((depth + width) * itemsize)))
    else:
        stages = 1
        most_rows = min(64, target.unified_buffer // (6 * 4 * width))
        most_keys = max(16, min(64 if quantised else 128, 2**16 // ((depth + width) * (2 if quantised else 1))))
        if most_rows < 16:
            raise ValueError(f"values of {value_size} elements: sums of 16 rows do not fit on chip")
    tile_rows = max(16, min(1 << (most_rows.bit_length() - 1), next_power_of_two(rows)))
    gather = target.kind == "cuda" and page > 0 and not selected
    pieces = math.gcd(page, selected) if page and selected else page or selected
    span = 1 << (most_keys.bit_length() - 1) if gather or not pieces else _divisor(pieces, most_keys)
    keys = max(16, next_power_of_two(span))
    warps = 8 if tile_rows >= 128 else 4
    return TilePlan(tile_rows, span, keys, depth, width, gather, warps, stages)
