"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name
from ascend_kernels.ops.sampling.probabilities.calls import ROWS, VOCAB


def calls() -> Iterator[Call]:
    """With and without min-p and a map of rows to requests, in the dtypes that logits have."""
    temperature, requests = meta(ROWS, dtype=torch.float32), meta(ROWS, dtype=torch.int32)
    for dtype in (torch.float32, torch.bfloat16):
        logits = meta(ROWS, VOCAB, dtype=dtype)
        for bound in (None, temperature) if dtype == torch.float32 else (None,):
            for owner in (None, requests):
                extra = ("-minp" if bound is not None else "") + ("-requests" if owner is not None else "")
                minimum = 2 * logits.nbytes + 4 * ROWS
                yield Call(f"V{VOCAB}-{short_name(dtype)}{extra}", (logits, temperature, bound, owner), minimum)
