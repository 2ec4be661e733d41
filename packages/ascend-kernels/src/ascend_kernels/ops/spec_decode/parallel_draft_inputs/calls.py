"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """Eight rows per request, with and without rejected rows."""
    requests, queries = 48, 8
    tokens, table = meta(requests, dtype=torch.int32), meta(requests, 64, dtype=torch.int32)
    positions, starts = meta(4 * requests, dtype=torch.int64), meta(requests + 1, dtype=torch.int32)
    for rejected in (None, tokens):
        # A token, an offset and a position per request; a block number and results per row.
        minimum = requests * (4 + 4 + 8 + queries * (4 + 4 + 8 + 4)) + (0 if rejected is None else rejected.nbytes)
        label = f"Q{queries}" + ("" if rejected is None else "-rejected")
        yield Call(label, (tokens, positions, starts, rejected, table, 128, queries, 7, 8192, -1), minimum)
