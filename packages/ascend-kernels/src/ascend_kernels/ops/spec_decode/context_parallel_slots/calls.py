"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """Two ranks that take turns token by token and page by page."""
    requests, tokens = 4, 4096
    starts = torch.arange(requests + 1, dtype=torch.int32) * (tokens // requests)
    positions, table = meta(tokens, dtype=torch.int64), meta(requests, 64, dtype=torch.int32)
    slots = meta(tokens, dtype=torch.int32)
    # A token costs its position, its block number and its slot.
    minimum = starts.nbytes + tokens * (8 + 4 + 4)
    for interleave in (1, 128):
        yield Call(f"I{interleave}", (starts, positions, table, 128, 1, 2, 0, interleave, slots, -1), minimum)
