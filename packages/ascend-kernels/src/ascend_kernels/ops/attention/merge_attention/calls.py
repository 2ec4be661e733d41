"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Heads of common models, of two parts and of four."""
    for parts, heads, size, dtype in (
        (2, 32, 128, torch.bfloat16),
        (4, 16, 128, torch.bfloat16),
        (2, 16, 512, torch.bfloat16),
        (2, 32, 64, torch.float16),
        (2, 32, 128, torch.float32),
    ):
        outputs, lses = meta(parts, 192, heads, size, dtype=dtype), meta(parts, 192, heads, dtype=torch.float32)
        # Of the log-sum-exps, which are read twice, once.
        minimum = (outputs.nbytes + lses.nbytes) // parts * (parts + 1)
        yield Call(f"P{parts}-H{heads}-D{size}-{short_name(dtype)}", (outputs, lses), minimum)
