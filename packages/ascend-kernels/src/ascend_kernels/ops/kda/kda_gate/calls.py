"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """Heads of Kimi Linear, with and without a bias."""
    g, rate, bias = (
        meta(2048, 32, 128, dtype=torch.bfloat16),
        meta(32, dtype=torch.float32),
        meta(4096, dtype=torch.float32),
    )
    yield Call("bias", (g, rate, bias, 1.0, 20.0))
    yield Call("plain", (g, rate, None, 1.0, 20.0))
