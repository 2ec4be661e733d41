"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def _tensors(tokens: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    q = meta(tokens, 32, 128, dtype=dtype)
    return q, q, q, meta(32, dtype=torch.float32)


def calls() -> Iterator[Call]:
    """Two sequences of a prompt's length, 32 heads of 128 channels."""
    state, starts = meta(2, 32, 128, 128, dtype=torch.float32), meta(3, dtype=torch.int32)
    for dtype in (torch.bfloat16, torch.float16):
        yield Call(f"D128-{short_name(dtype)}", (*_tensors(16384, dtype), state, starts, 1.0))


def update_calls() -> Iterator[Call]:
    """Decoding of 32 sequences."""
    state, starts, slots = (
        meta(40, 32, 128, 128, dtype=torch.float32),
        meta(33, dtype=torch.int32),
        meta(32, dtype=torch.int32),
    )
    yield Call("decode", (*_tensors(32, torch.bfloat16), state, starts, slots, 1.0))
