"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """Both kinds of expert numbers; how many experts there are compiles nothing new."""
    for dtype in (torch.int32, torch.int64):
        yield Call(f"T512-k8-E128-{str(dtype)[6:]}", (meta(512, 8, dtype=dtype), 0, 128))
