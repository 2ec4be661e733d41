"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Vocabularies of common models."""
    for vocabulary, dtype in ((151936, torch.float32), (128256, torch.bfloat16), (129280, torch.float16)):
        logits, rows = meta(8, vocabulary, dtype=dtype), torch.arange(4, dtype=torch.int32)
        bitmask = meta(4, -(-vocabulary // 32), dtype=torch.int32)
        minimum = logits.nbytes + bitmask.nbytes + rows.nbytes
        yield Call(f"V{vocabulary}-{short_name(dtype)}", (logits, bitmask, rows), minimum)
