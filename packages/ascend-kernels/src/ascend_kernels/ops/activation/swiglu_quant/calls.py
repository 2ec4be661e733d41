"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Intermediate sizes of experts and of dense layers, with both kinds of group lists and with GPT-OSS's form."""
    dtype, rows = torch.bfloat16, 1024
    for columns in (768, 1408, 2048, 4096, 8192):
        x = meta(rows, 2 * columns, dtype=dtype)
        minimum = x.nbytes + x.nbytes // 4 + 4 * rows if columns <= 4096 else None
        yield Call(f"T{rows}-H{columns}-{short_name(dtype)}", (x, None, False, 1.0, 0.0, 0.0), minimum)
    x = meta(rows, 4096, dtype=dtype)
    counts = torch.full((64,), rows // 64)
    for cumulative, groups in ((False, counts), (True, counts.cumsum(0))):
        name = "cumulative" if cumulative else "counts"
        yield Call(f"T{rows}-H2048-{name}", (x, groups, cumulative, 1.0, 0.0, 0.0))
    yield Call("oai", (x, None, False, 1.702, 1.0, 7.0), x.nbytes + x.nbytes // 4 + 4 * rows)
