"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def _tensors(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    k, w, u = meta(1024, 16, 128, dtype=dtype), meta(1024, 32, 128, dtype=dtype), meta(1024, 32, 128, dtype=dtype)
    return k, w, u, meta(1024, 32, dtype=torch.float32)


def calls() -> Iterator[Call]:
    """Grouped keys of 128 channels, with and without initial states."""
    cu_seqlens = meta(3, dtype=torch.int32)
    state = meta(2, 32, 128, 128, dtype=torch.float32)
    for dtype in (torch.bfloat16, torch.float16):
        for initial in (None, state):
            label = f"D128-{short_name(dtype)}-{'fresh' if initial is None else 'continued'}"
            yield Call(label, (*_tensors(dtype), initial, cu_seqlens, cu_seqlens, 17, 64))


def transition_calls() -> Iterator[Call]:
    """Grouped keys of 128 channels."""
    k, w, _, sums = _tensors(torch.bfloat16)
    yield Call("D128-bf16", (k, w, sums, meta(3, dtype=torch.int32), 64))
