"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name

TOKENS = 48


def calls() -> Iterator[Call]:
    """Adapters of usual ranks; every token's matrix is read for it."""
    for dtype, columns, rank in (
        (torch.bfloat16, 4096, 16),
        (torch.bfloat16, 4096, 64),
        (torch.float16, 2048, 8),
        (torch.float32, 2048, 16),
    ):
        x, a = meta(TOKENS, columns, dtype=dtype), meta(8, rank, columns, dtype=dtype)
        adapters = torch.arange(TOKENS) % 8
        minimum = x.nbytes + TOKENS * (a[0].nbytes + rank * 4 + 8)
        yield Call(f"H{columns}-r{rank}-{short_name(dtype)}", (x, a, adapters, 1.0), minimum)
