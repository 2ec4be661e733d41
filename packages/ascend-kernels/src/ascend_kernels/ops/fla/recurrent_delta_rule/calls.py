"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def _tensors(tokens: int, dtype: torch.dtype, per_channel: bool) -> tuple[torch.Tensor, ...]:
    key_heads = 32 if per_channel else 16
    q, v = meta(tokens, key_heads, 128, dtype=dtype), meta(tokens, 32, 128, dtype=dtype)
    g = meta(tokens, 32, *((128,) if per_channel else ()), dtype=torch.float32)
    return q, q, v, g, meta(tokens, 32, dtype=dtype)


def calls() -> Iterator[Call]:
    """Four sequences of up to eight tokens, a decay per head and per key channel."""
    for per_channel in (False, True):
        label = "kda" if per_channel else "gdn"
        state = meta(4, 32, 128, 128, dtype=torch.float32)
        yield Call(label, (*_tensors(32, torch.bfloat16, per_channel), state, meta(5, dtype=torch.int32), 0.1, True))


def update_calls() -> Iterator[Call]:
    """Decoding of 32 sequences, and verification of three drafts each."""
    for per_channel in (False, True):
        label = "kda" if per_channel else "gdn"
        state, starts = meta(160, 32, 128, 128, dtype=torch.float32), meta(33, dtype=torch.int32)
        slots = meta(32, dtype=torch.int32)
        decode = _tensors(32, torch.bfloat16, per_channel)
        yield Call(f"{label}-decode", (*decode, state, starts, slots, None, 0.1, True))
        verify = _tensors(128, torch.bfloat16, per_channel)
        yield Call(f"{label}-verify", (*verify, state, starts, meta(32, 4, dtype=torch.int32), slots, 0.1, True))
