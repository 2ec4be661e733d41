"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name

TOKENS = 192


def calls() -> Iterator[Call]:
    """Heads of common models, whole and in part, both orders of pairs, and positions in three dimensions."""
    table = meta(32768, 512, dtype=torch.bfloat16)
    positions = torch.arange(TOKENS)
    for dtype in (torch.bfloat16, torch.float16):
        for heads, key_heads, size, turned, interleaved in (
            (32, 8, 128, 128, False),
            (64, 8, 128, 64, False),
            (16, 2, 256, 64, False),
            (64, 64, 192, 192, False),
            (32, 2, 128, 64, True),
            (128, 1, 64, 64, True),
        ):
            query, key = meta(TOKENS, heads, size, dtype=dtype), meta(TOKENS, key_heads, size, dtype=dtype)
            cos, sin = table[:, : turned // 2].to(dtype), table[:, turned // 2 : turned].to(dtype)
            name = f"H{heads}-{key_heads}-D{size}-R{turned}-{'pairs' if interleaved else 'halves'}-{short_name(dtype)}"
            # A token reads and writes its heads, and reads its position and a cosine and a sine per pair.
            minimum = TOKENS * ((heads + key_heads) * turned * 2 * 2 + turned * 2 + 8)
            yield Call(name, (query, key, cos, sin, positions, interleaved, [], False), minimum)
    query, key = meta(TOKENS, 32, 128, dtype=torch.bfloat16), meta(TOKENS, 8, 128, dtype=torch.bfloat16)
    tables = meta(TOKENS, 64, dtype=torch.float32)
    yield Call("tables", (query, key, tables, tables, None, False, [], False), TOKENS * (40 * 128 * 4 + 128 * 4))
    yield Call("one-tensor", (query, None, tables, tables, None, False, [], False), TOKENS * (32 * 128 * 4 + 128 * 4))
    three = torch.arange(3 * TOKENS).reshape(3, TOKENS)
    cos, sin = table[:, :64], table[:, 64:128]
    minimum = TOKENS * (40 * 128 * 4 + 128 * 2 + 24)
    yield Call("mrope", (query, key, cos, sin, three, False, [16, 24, 24], False), minimum)
    yield Call("mrope-interleaved", (query, key, cos, sin, three, False, [24, 20, 20], True), minimum)
