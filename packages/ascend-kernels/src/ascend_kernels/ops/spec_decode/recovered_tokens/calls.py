"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta
from ascend_kernels.ops.sampling.probabilities.calls import ROWS, VOCAB


def calls() -> Iterator[Call]:
    """With and without draft probabilities, of a whole vocabulary and of candidates."""
    rows = (
        meta(ROWS, dtype=torch.int64), meta(ROWS, dtype=torch.float32), meta(ROWS, dtype=torch.int64),
        meta(ROWS, dtype=torch.int64), meta(ROWS, dtype=torch.int32),
    )  # fmt: skip
    per_row = ROWS * (8 + 4 + 8 + 8 + 4 + 4)
    whole = meta(ROWS, VOCAB, dtype=torch.float32)
    few, indices = meta(ROWS, 1024, dtype=torch.float32), meta(ROWS, 1024, dtype=torch.int64)
    yield Call(f"V{VOCAB}", (whole, None, *rows, None), whole.nbytes + per_row)
    yield Call(f"V{VOCAB}-drafts", (whole, whole, *rows, None), 2 * whole.nbytes + per_row)
    yield Call("C1024", (few, None, *rows, indices), few.nbytes + indices.nbytes + per_row)
    yield Call("C1024-drafts", (few, whole, *rows, indices), 2 * few.nbytes + indices.nbytes + per_row)
