"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """bf16 rows of two widths."""
    dtype = torch.bfloat16
    for columns in (1280, 4096):
        x = meta(1024, 2 * columns, dtype=dtype)
        yield Call(f"T1024-H{columns}-{short_name(dtype)}", (x, 7.0), x.nbytes * 3 // 2)
