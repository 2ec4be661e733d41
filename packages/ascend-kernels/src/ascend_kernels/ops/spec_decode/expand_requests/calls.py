"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Temperatures and limits, four rows per request."""
    requests = 48
    cu_counts = torch.arange(4, 4 * requests + 1, 4, dtype=torch.int32)
    for dtype in (torch.float32, torch.int32):
        values = meta(requests, dtype=dtype)
        minimum = cu_counts.nbytes + values.nbytes * 5
        yield Call(f"B{requests}-{short_name(dtype)}", (values, cu_counts, 4 * requests, 0.0, 3.0), minimum)
