"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Hidden and intermediate sizes of common models."""
    for dtype in (torch.bfloat16, torch.float16):
        for columns in (2048, 4096, 7168, 8192) if dtype == torch.bfloat16 else (4096,):
            x = meta(1024, columns, dtype=dtype)
            yield Call(f"T1024-H{columns}-{short_name(dtype)}", (x,), x.nbytes * 3 // 2 + 4 * 1024)
