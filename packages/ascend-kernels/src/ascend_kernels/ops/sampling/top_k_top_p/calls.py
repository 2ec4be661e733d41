"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name
from ascend_kernels.ops.sampling.probabilities.calls import VOCAB


def calls() -> Iterator[Call]:
    """Each combination of limits; vocabularies that lanes hold whole, and a long one, where both kernels run."""
    rows = 48
    k, p = torch.full((rows,), 50, dtype=torch.int32), meta(rows, dtype=torch.float32)
    for label, limits in (("k", (k, None)), ("p", (None, p)), ("kp", (k, p))):
        for dtype in (torch.float32, torch.bfloat16) if label == "kp" else (torch.float32,):
            short, long = meta(rows, 6000, dtype=dtype), meta(rows, VOCAB, dtype=dtype)
            minimum = 2 * short.nbytes + 8 * rows
            yield Call(f"V6000-{label}-{short_name(dtype)}", (short, *limits, None, False), minimum)
            yield Call(f"V6000-{label}-{short_name(dtype)}-exhaustive", (short, *limits, None, True), minimum)
            yield Call(f"V{VOCAB}-{label}-{short_name(dtype)}", (long, *limits, None, False))
    requests = meta(rows, dtype=torch.int32)
    yield Call(f"V{VOCAB}-kp-requests", (meta(rows, VOCAB, dtype=torch.float32), k, p, requests, False))
