"""How the keys of each token are handed to programs."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, next_power_of_two
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class IndexerPlan:
    """``tasks`` (a token, a share of its keys) over ``programs``; tiles of ``span`` keys (``keys``: power of two).

    Attributes:
        heads: the power of two above.
        depth: channels of a key, the power of two above.
        warps: on CUDA.
    """

    programs: int
    tasks: int
    shares: int
    span: int
    keys: int
    heads: int
    depth: int
    warps: int


def plan_indexer(target: Target, tokens: int, heads: int, size: int, page: int, block: int, keys: int) -> IndexerPlan:
    """Tiles within a page and a block; scores of all heads with 128 keys at most share the unified buffer."""
    cuda = target.kind == "cuda"
    rows = max(16, next_power_of_two(heads))
    most = max(16, min(128, 8192 // rows))
    unit = page if block == 1 else block
    span = next(divisor for divisor in range(min(unit, most), 0, -1) if unit % divisor == 0)
    work = ceil_div(keys, unit)
    wanted = ceil_div((4 if cuda else 1) * target.cube_cores, max(tokens, 1))
    shares = max(1, min(wanted, work))
    tasks = tokens * shares
    programs = min(tasks, MAX_PROGRAMS if cuda else target.cube_cores)
    depth = max(16, next_power_of_two(size))
    return IndexerPlan(programs, tasks, shares, span, max(16, next_power_of_two(span)), rows, depth, warps=4)
