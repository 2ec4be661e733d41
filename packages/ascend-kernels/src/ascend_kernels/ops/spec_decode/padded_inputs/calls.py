"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """A batch of several blocks."""
    requests = 1000
    vector, starts = meta(requests, dtype=torch.int32), meta(requests + 1, dtype=torch.int32)
    yield Call(f"B{requests}", (vector, vector, starts), 5 * vector.nbytes)
