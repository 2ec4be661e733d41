"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Heads of Kimi Linear: 32 of 128 channels."""
    state = meta(2, 32, 128, 128, dtype=torch.float32)
    for dtype in (torch.bfloat16, torch.float16):
        q, g = meta(1024, 32, 128, dtype=dtype), meta(1024, 32, 128, dtype=torch.float32)
        beta = meta(1024, 32, dtype=dtype)
        yield Call(f"D128-{short_name(dtype)}", (q, q, q, g, beta, state, meta(3, dtype=torch.int32), 0.1, True))
