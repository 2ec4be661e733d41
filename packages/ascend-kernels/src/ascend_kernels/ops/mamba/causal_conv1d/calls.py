"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def _tensors(dtype: torch.dtype, tokens: int, length: int) -> tuple[torch.Tensor, ...]:
    channels = 8192
    state = meta(40, length, channels, dtype=dtype)
    return meta(tokens, channels, dtype=dtype), meta(channels, 4, dtype=dtype), meta(channels, dtype=dtype), state


def calls() -> Iterator[Call]:
    """The convolution of Qwen3-Next, 8,192 channels and 4 taps, plain and with cached prefixes."""
    starts, slots, table = meta(3, dtype=torch.int32), meta(2, dtype=torch.int32), meta(2, 16, dtype=torch.int32)
    for dtype in (torch.bfloat16, torch.float16):
        tensors = _tensors(dtype, 1024, 3)
        yield Call(short_name(dtype), (*tensors, starts, slots, table[:, :1], None, None, None, 0, True))
    yield Call("prefixes", (*tensors, starts, slots, table, slots, slots, slots, 256, True))


def update_calls() -> Iterator[Call]:
    """Decoding of 32 sequences, and verification of three drafts each."""
    starts, slots = meta(33, dtype=torch.int32), meta(32, dtype=torch.int32)
    yield Call("decode", (*_tensors(torch.bfloat16, 32, 3), starts, slots, slots, None, True))
    yield Call("verify", (*_tensors(torch.bfloat16, 128, 6), starts, slots, slots, slots, True))
