"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Norms of hidden states, and softmax and mean of vocabularies and hidden states."""
    tokens = 96
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        x, weight = meta(tokens, 4096, dtype=dtype), meta(4096, dtype=dtype)
        yield Call(f"rms-norm-{short_name(dtype)}", (x, weight, "rms_norm", 1e-6), 2 * x.nbytes + weight.nbytes)
        yield Call(f"mean-{short_name(dtype)}", (x, None, "mean", 0.0), x.nbytes + tokens * x.itemsize)
    logits = meta(tokens, 32000, dtype=torch.float32)
    for kind in ("softmax", "log_softmax"):
        yield Call(kind, (logits, None, kind, 0.0), 2 * logits.nbytes)
