"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Rows of hidden states."""
    for dtype in (torch.bfloat16, torch.float32):
        x = meta(1024, 4096, dtype=dtype)
        yield Call(f"T1024-H4096-{short_name(dtype)}", (x, x, 0.5), 3 * x.nbytes)
