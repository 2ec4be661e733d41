"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name

COLUMNS = (704, 1408, 2816, 4096, 8192, 11008, 14336)
"""Intermediate sizes of common models, whole or split over devices."""
ROWS = 384


def calls() -> Iterator[Call]:
    """The plain form in the dtypes that models have, with a limit, and GPT-OSS's form."""
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for columns in COLUMNS if dtype == torch.bfloat16 else (4096,):
            x = meta(ROWS, 2 * columns, dtype=dtype)
            yield Call(f"T{ROWS}-H{columns}-{short_name(dtype)}", (x, 1.0, 0.0, 0.0, False), x.nbytes * 3 // 2)
    x = meta(ROWS, 8192, dtype=torch.bfloat16)
    yield Call("limit", (x, 1.0, 0.0, 10.0, False), x.nbytes * 3 // 2)
    yield Call("oai", (x, 1.702, 1.0, 7.0, False), x.nbytes * 3 // 2)
    yield Call("oai-interleaved", (x, 1.702, 1.0, 7.0, True), x.nbytes * 3 // 2)
