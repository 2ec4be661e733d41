"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """As many requests as fill tiles exactly, both dtypes."""
    for dtype in (torch.int32, torch.int64):
        starts, lengths = meta(4097, dtype=dtype), meta(4096, dtype=dtype)
        minimum = starts.nbytes + lengths.nbytes + 4097 * 4 + 2 * 4096 * 4
        yield Call(f"R4096-{short_name(dtype)}", (starts, lengths, 1000, 2000), minimum)
