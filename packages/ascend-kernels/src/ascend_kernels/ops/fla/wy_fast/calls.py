"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Grouped keys of 128 channels."""
    chunks = [meta(16, dtype=torch.int32) for _ in range(2)]
    for dtype in (torch.bfloat16, torch.float16):
        k, v = meta(1024, 16, 128, dtype=dtype), meta(1024, 32, 128, dtype=dtype)
        beta, sums = meta(1024, 32, dtype=dtype), meta(1024, 32, dtype=torch.float32)
        yield Call(f"D128-{short_name(dtype)}", (k, v, beta, sums, meta(1024, 32, 64, dtype=dtype), *chunks))
