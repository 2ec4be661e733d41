"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Hidden sizes of common models, eight experts per token, and rows that are quantised already."""
    tokens, k = 96, 8
    positions = torch.arange(tokens * k, dtype=torch.int32).view(tokens, k)
    for columns, dtype in ((2048, torch.bfloat16), (7168, torch.bfloat16), (4096, torch.float16), (7168, torch.int8)):
        x = meta(tokens, columns, dtype=dtype)
        minimum = x.nbytes * (1 + k) + positions.nbytes
        yield Call(f"H{columns}-k{k}-{short_name(dtype)}", (x, positions, tokens * k), minimum)
