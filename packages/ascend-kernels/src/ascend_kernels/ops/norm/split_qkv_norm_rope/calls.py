"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ascend_kernels.calls import Call, meta, short_name

TOKENS = 192


def _arguments(
    heads: int, key_heads: int, size: int, turned: int, dtype: torch.dtype, **changes: Any
) -> tuple[tuple[Any, ...], int]:
    """The operator's arguments in order and the least bytes."""
    gated, whole = changes.get("gated", False), changes.get("whole", False)
    section = changes.get("section", [])
    # Weights as wide as a row, which every program reads, need more tokens to be no part of the count.
    tokens = 4 * TOKENS if whole else TOKENS
    qkv = meta(tokens, (heads * (1 + gated) + 2 * key_heads) * size, dtype=dtype)
    table = meta(32768, turned, dtype=dtype)
    positions = torch.arange((3 if section else 1) * tokens).reshape(3 if section else 1, tokens)
    weights = [meta(size * (count if whole else 1), dtype=dtype) for count in (heads, key_heads)]
    means = meta(tokens, 2, dtype=torch.float32) if whole else None
    minimum = 2 * qkv.nbytes + tokens * (turned * 2 + 8) + sum(weight.nbytes for weight in weights)
    arguments = (
        qkv,
        heads,
        key_heads,
        *weights,
        None,
        None,
        means,
        table[:, : turned // 2],
        table[:, turned // 2 :],
        positions if section else positions[0],
        1e-6,
        changes.get("gemma", False),
        gated,
        section,
        changes.get("interleaved", False),
    )
    return arguments, minimum


def calls() -> Iterator[Call]:
    """Heads of Qwen3 and MiniMax-M2, whole and partly turned, with a gate, with positions in three dimensions."""
    for dtype in (torch.bfloat16, torch.float16):
        for heads, key_heads, size, turned in ((32, 8, 128, 128), (16, 8, 128, 128), (16, 2, 256, 64)):
            arguments, minimum = _arguments(heads, key_heads, size, turned, dtype)
            yield Call(f"H{heads}-{key_heads}-D{size}-R{turned}-{short_name(dtype)}", arguments, minimum)
    for name, heads, key_heads, size, turned, changes in (
        ("gated", 16, 2, 256, 64, {"gated": True, "gemma": True}),
        ("mrope", 32, 8, 128, 128, {"section": [24, 20, 20]}),
        ("mrope-interleaved", 32, 8, 128, 128, {"section": [24, 20, 20], "interleaved": True}),
        ("whole-row", 12, 2, 128, 64, {"whole": True}),
    ):
        arguments, minimum = _arguments(heads, key_heads, size, turned, torch.bfloat16, **changes)
        yield Call(name, arguments, minimum)
