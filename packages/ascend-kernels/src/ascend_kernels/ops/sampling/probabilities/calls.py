"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name

VOCAB = 151936
"""The vocabulary of Qwen: longer than a block everywhere."""
ROWS = 16


def calls() -> Iterator[Call]:
    """Rows that fit into a block and rows that do not, with and without temperatures, in the dtypes of logits."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        logits = meta(ROWS, VOCAB, dtype=dtype)
        minimum = logits.nbytes + logits.numel() * 4
        for log in (False, True) if dtype == torch.float32 else (False,):
            yield Call(f"V{VOCAB}-{short_name(dtype)}{'-log' if log else ''}", (logits, None, log), minimum)
    for vocab in (4000, VOCAB):
        logits, temperature = meta(ROWS, vocab, dtype=torch.float32), meta(ROWS, dtype=torch.float32)
        yield Call(f"V{vocab}-temperatures", (logits, temperature, False), 2 * logits.nbytes + temperature.nbytes)
