"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """Heads of Qwen3-Next on one and on four ranks."""
    for heads in (32, 8):
        rows, vector = meta(4096, heads, dtype=torch.bfloat16), meta(heads, dtype=torch.float32)
        minimum = 3 * rows.nbytes + 4 * rows.numel() + 2 * vector.nbytes
        yield Call(f"H{heads}", (vector, rows, rows, vector, 1.0, 20.0), minimum)
