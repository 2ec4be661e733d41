"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ascend_kernels.calls import Call, meta, short_name


def call(
    requests: int, heads: int, kv_heads: int, key_size: int, value_size: int, dtype: torch.dtype, pages: int = 64,
    *, page: int = 128, int8: bool = False, sinks: bool = False, window: int = 0, soft_cap: float = 0.0,
    lengths: torch.Tensor | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Arguments of a decode step."""
    kind = torch.int8 if int8 else dtype
    return (
        meta(requests, heads, key_size, dtype=dtype),
        meta(1024, page, kv_heads, key_size, dtype=kind),
        meta(1024, page, kv_heads, value_size, dtype=kind),
        meta(requests, pages, dtype=torch.int32),
        meta(requests, dtype=torch.int32) if lengths is None else lengths,
        meta(kv_heads, key_size, dtype=torch.float32) if int8 else None,
        meta(kv_heads, value_size, dtype=torch.float32) if int8 else None,
        meta(heads, dtype=dtype) if sinks else None,
        key_size**-0.5,
        window,
        soft_cap,
    )


def calls() -> Iterator[Call]:
    """Heads of common models, splits, int8, a window with sinks, a cap, sizes that the vendor's operator refuses."""
    bf16, fp16 = torch.bfloat16, torch.float16
    yield Call("B32-H32-G4-D128-bf16", call(32, 32, 8, 128, 128, bf16))
    yield Call("B1-H32-G4-D128-splits", call(1, 32, 8, 128, 128, bf16))
    yield Call("B32-D128-int8", call(32, 32, 8, 128, 128, fp16, int8=True))
    yield Call("B32-D64-G8-sinks-window", call(32, 64, 8, 64, 64, bf16, sinks=True, window=128))
    yield Call("B32-D256-cap", call(32, 16, 8, 256, 256, bf16, soft_cap=50.0))
    yield Call("B32-D80", call(32, 32, 32, 80, 80, bf16))
    yield Call("B32-latent-K576-V512", call(32, 16, 1, 576, 512, bf16))
    yield Call("B32-D128-fp32", call(32, 32, 8, 128, 128, torch.float32))
    requests, length, kv_heads = 24, 1024, 8
    arguments = call(requests, 32, kv_heads, 128, 128, bf16, lengths=torch.full((requests,), length, dtype=torch.int32))
    keys = requests * length * kv_heads * 128 * 2
    rows = arguments[0].nbytes * 2 + requests * 32 * 4
    tables = requests * (length // 128 + 1) * 4
    yield Call(f"B24-T{length}-{short_name(bf16)}", arguments, 2 * keys + rows + tables)
