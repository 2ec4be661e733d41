"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """DeepSeek-V3.2's indexer by keys, and by blocks of 64 and 128."""
    tokens, heads, size, pages = 24, 64, 128, 8
    query = meta(tokens, heads, size, dtype=torch.bfloat16)
    weights, cache = meta(tokens, heads, dtype=torch.float32), meta(512, 128, size, dtype=torch.bfloat16)
    table, requests = meta(tokens, pages, dtype=torch.int32), torch.arange(tokens, dtype=torch.int32)
    lengths = torch.full((tokens,), pages * 128, dtype=torch.int32)
    keys = tokens * pages * 128
    # Scores are filled before they are written, by torch.
    minimum = keys * (size * 2 + 4) + query.nbytes + weights.nbytes + table.nbytes + 8 * tokens
    yield Call("T24-H64-D128-bf16", (query, weights, cache, table, requests, lengths, 1), minimum)
    for block in (64, 128):
        yield Call(f"block{block}", (query, weights, cache, table, requests, lengths, block))
