"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name
from ascend_kernels.ops.sampling.probabilities.calls import ROWS, VOCAB


def calls() -> Iterator[Call]:
    """The sampled token alone, and with the five and twenty most likely ones."""
    for dtype, tokens in ((torch.float32, 1), (torch.float32, 6), (torch.float32, 21), (torch.bfloat16, 1)):
        logits, ids = meta(ROWS, VOCAB, dtype=dtype), meta(ROWS, tokens, dtype=torch.int64)
        minimum = logits.nbytes + ROWS * tokens * (8 + 4) + 4 * ROWS
        yield Call(f"V{VOCAB}-K{tokens}-{short_name(dtype)}", (logits, ids), minimum)
