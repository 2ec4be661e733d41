"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Sixteen sequences, both dtypes of their offsets."""
    for dtype in (torch.int32, torch.int64):
        yield Call(f"N16-T4096-{short_name(dtype)}", (meta(17, dtype=dtype), 4096, 64))
