"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name
from ascend_kernels.ops.sampling.probabilities.calls import ROWS, VOCAB


def calls() -> Iterator[Call]:
    """With and without a map of rows and drafts, in the dtypes that logits have."""
    rows, requests, vocab = ROWS, ROWS // 4, VOCAB
    owner, ids = meta(rows, dtype=torch.int32), meta(rows, dtype=torch.int64)
    drafts = (torch.arange(rows) % 4).to(torch.int32)
    for dtype in (torch.float32, torch.bfloat16):
        logits = meta(rows, vocab, dtype=dtype)
        for label, count, extra in (("", rows, (None, None, None)), ("-drafts", requests, (owner, ids, drafts))):
            counts, factors = meta(count, vocab, dtype=torch.int32), meta(count, dtype=torch.float32)
            # Each row reads its request's counts.
            minimum = 2 * logits.nbytes + 2 * rows * vocab * 4 + 12 * rows
            arguments = (logits, counts, counts, factors, factors, factors, *extra)
            yield Call(f"V{vocab}-{short_name(dtype)}{label}", arguments, minimum)
