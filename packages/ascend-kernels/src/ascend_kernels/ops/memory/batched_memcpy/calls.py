"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call


def calls() -> Iterator[Call]:
    """Copies of a MiB, as many as there are cores."""
    size = 2**20
    sources = torch.arange(1, 49) * size
    sizes = torch.full((48,), size)
    # An element of each table is read by whoever has a share of its copy.
    yield Call("N48-1MiB", (sources, sources + 2**30, sizes), 48 * (2 * size + 24))
