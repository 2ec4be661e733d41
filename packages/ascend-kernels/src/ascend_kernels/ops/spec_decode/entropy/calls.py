"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta
from ascend_kernels.ops.sampling.probabilities.calls import ROWS, VOCAB


def calls() -> Iterator[Call]:
    """A common vocabulary."""
    probs = meta(ROWS, VOCAB, dtype=torch.float32)
    yield Call(f"V{VOCAB}", (probs,), probs.nbytes + 4 * ROWS)
