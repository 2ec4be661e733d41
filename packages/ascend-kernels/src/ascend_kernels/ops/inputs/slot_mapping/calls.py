"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Both widths of a slot; the kernel depends on nothing else."""
    requests, tokens, blocks, block_size = 4, 4096, 64, 128
    starts = torch.arange(requests + 1, dtype=torch.int32) * (tokens // requests)
    table = meta(requests, blocks, dtype=torch.int32)
    positions = meta(tokens, dtype=torch.int64)
    for dtype in (torch.int32, torch.int64):
        slots = meta(tokens, dtype=dtype)
        # A token costs its position, its page number and its slot.
        minimum = starts.nbytes + tokens * (8 + 4 + slots.itemsize)
        yield Call(
            f"R{requests}-T{tokens}-{short_name(dtype)}", (starts, positions, table, block_size, slots, -1), minimum
        )
