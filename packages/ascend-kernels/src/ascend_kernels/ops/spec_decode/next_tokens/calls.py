"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """Three drafts and one token more, with and without discarded requests."""
    requests, width = 96, 4
    sampled, backup = meta(requests, width, dtype=torch.int32), meta(requests, dtype=torch.int32)
    minimum = sampled.nbytes + 3 * backup.nbytes
    yield Call(f"B{requests}", (sampled, backup, None, 32000), minimum)
    discarded = meta(requests, dtype=torch.bool)
    yield Call(f"B{requests}-discarded", (sampled, backup, discarded, 32000), minimum + discarded.nbytes)
