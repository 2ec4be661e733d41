"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """Blocks of a page and of half a page, bf16 and int8."""
    tokens, heads, kv_heads, size, chosen, pages = 24, 32, 4, 128, 16, 64
    query = meta(tokens, heads, size, dtype=torch.bfloat16)
    table, numbers = meta(tokens, pages, dtype=torch.int32), meta(tokens, dtype=torch.int32)
    blocks = meta(tokens, kv_heads, chosen, dtype=torch.int32)
    for block, int8 in ((128, False), (64, False), (128, True)):
        cache = meta(512, 128, kv_heads, size, dtype=torch.int8 if int8 else torch.bfloat16)
        scales = meta(kv_heads, size, dtype=torch.float32) if int8 else None
        rest = (scales, scales, None, size**-0.5, 0.0)
        label = f"block{block}-{'int8' if int8 else 'bf16'}"
        yield Call(label, (query, cache, cache, table, numbers, numbers, blocks, block, *rest))
    cache = meta(512, 128, kv_heads, size, dtype=torch.bfloat16)
    rows = torch.arange(tokens, dtype=torch.int32)
    lengths = torch.full((tokens,), pages * 128, dtype=torch.int32)
    listed = torch.arange(chosen, dtype=torch.int32).expand(tokens, kv_heads, chosen).contiguous()
    minimum = 2 * tokens * chosen * kv_heads * 128 * size * 2 + 2 * query.nbytes + listed.nbytes
    yield Call(
        "T24-N16-bf16",
        (query, cache, cache, table, rows, lengths, listed, 128, None, None, None, size**-0.5, 0.0),
        minimum,
    )
