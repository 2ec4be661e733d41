"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Both widths of a token id, short and long rows."""
    for dtype in (torch.int32, torch.int64):
        for length in (1, 60, 4096):
            tokens = meta(16, length, dtype=dtype)
            # A token costs its id and the count that it raises; the rest of the counts is zeroed by torch.
            yield Call(f"R16-L{length}-{short_name(dtype)}", (tokens, 32000), tokens.numel() * (tokens.itemsize + 4))
