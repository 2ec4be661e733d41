"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """With and without a map of rows and drafts, in the dtypes that logits have."""
    requests, length, vocab = 8, 20, 32000
    # Each request has a word of one token and one of three, which the end of its output begins.
    words = torch.tensor([9, 18, 19, 5] * requests, dtype=torch.int32)
    starts = torch.cat([torch.tensor([0, 1]) + 4 * request for request in range(requests)] + [torch.tensor([32])])
    starts, first = starts.to(torch.int32), torch.arange(0, 2 * requests + 1, 2, dtype=torch.int32)
    output = torch.arange(length, dtype=torch.int64).repeat(requests, 1)
    lengths = torch.full((requests,), length, dtype=torch.int32)
    for dtype in (torch.float32, torch.bfloat16):
        logits = meta(requests, vocab, dtype=dtype)
        # Per row two words: their bounds, four tokens, two tokens of the output, its length, two results.
        minimum = requests * (3 * 4 + 4 * 4 + 2 * 8 + 4 + 4 + 2 * dtype.itemsize)
        arguments = (words, starts, first, output, lengths)
        yield Call(f"R{requests}-{short_name(dtype)}", (logits, *arguments, None, None, None), minimum)
        rows = (
            torch.arange(requests),
            torch.zeros(requests, dtype=torch.int64),
            torch.zeros(requests, dtype=torch.int32),
        )
        yield Call(f"R{requests}-{short_name(dtype)}-drafts", (logits, *arguments, *rows), minimum + requests * 12)
