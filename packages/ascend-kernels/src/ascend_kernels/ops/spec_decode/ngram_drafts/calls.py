"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Both widths of a token id."""
    requests, length, drafts = 8, 8192, 5
    lengths = torch.full((requests,), length, dtype=torch.int32)
    for dtype in (torch.int32, torch.int64):
        tokens = meta(requests, length, dtype=dtype)
        minimum = tokens.nbytes + requests * (8 + 4 * drafts)
        yield Call(f"L{length}-{short_name(dtype)}", (tokens, lengths, 2, 4, drafts, 2 * length), minimum)
