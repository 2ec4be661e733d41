"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Inverses in the dtypes that keys have."""
    chunks = [meta(16, dtype=torch.int32) for _ in range(2)]
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        yield Call(short_name(dtype), (meta(1024, 32, 64, dtype=torch.float32), *chunks, dtype))
