"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """A rank's rows of MiniMax-M2 on four and on eight ranks."""
    tokens = 192
    for dtype in (torch.bfloat16, torch.float16):
        for heads, key_heads in ((12, 2), (6, 1)):
            q_columns, k_columns = heads * 128, key_heads * 128
            qkv = meta(tokens, q_columns + 2 * k_columns, dtype=dtype)
            minimum = tokens * ((q_columns + k_columns) * 2 + 8)
            yield Call(f"H{heads}-{key_heads}-{short_name(dtype)}", (qkv, q_columns, k_columns, 4), minimum)
