"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ascend_kernels.calls import Call, meta


def laid_out(
    tokens: int, heads: int, kv_heads: int, key_size: int, value_size: int, dtype: torch.dtype,
    *, causal: bool = True, sinks: bool = False, window: int = 0, soft_cap: float = 0.0,
) -> tuple[Any, ...]:  # fmt: skip
    """Arguments of a prefill without a prefix."""
    starts = meta(5, dtype=torch.int32)
    return (
        meta(tokens, heads, key_size, dtype=dtype),
        meta(tokens, kv_heads, key_size, dtype=dtype),
        meta(tokens, kv_heads, value_size, dtype=dtype),
        starts,
        starts,
        None,
        None,
        None,
        meta(heads, dtype=dtype) if sinks else None,
        key_size**-0.5,
        causal,
        window,
        soft_cap,
    )


def in_pages(tokens: int, heads: int, kv_heads: int, size: int, dtype: torch.dtype, int8: bool) -> tuple[Any, ...]:
    """Arguments of a prefill behind a prefix."""
    cache = meta(1024, 128, kv_heads, size, dtype=torch.int8 if int8 else dtype)
    scales = meta(kv_heads, size, dtype=torch.float32) if int8 else None
    lengths, table = meta(4, dtype=torch.int32), meta(4, 64, dtype=torch.int32)
    query = meta(tokens, heads, size, dtype=dtype)
    return (
        query,
        cache,
        cache,
        meta(5, dtype=torch.int32),
        lengths,
        table,
        scales,
        scales,
        None,
        size**-0.5,
        True,
        0,
        0.0,
    )


def calls() -> Iterator[Call]:
    """Heads of common models, laid out and in pages; an encoder; sizes that the vendor's operator refuses."""
    bf16 = torch.bfloat16
    yield Call("T4096-H32-G4-D128-bf16", laid_out(4096, 32, 8, 128, 128, bf16))
    yield Call("paged-D128-bf16", in_pages(4096, 32, 8, 128, bf16, False))
    yield Call("paged-D128-int8", in_pages(4096, 32, 8, 128, torch.float16, True))
    yield Call("H64-D64-sinks-window", laid_out(4096, 64, 8, 64, 64, bf16, sinks=True, window=128))
    yield Call("encoder-D80", laid_out(4096, 16, 16, 80, 80, bf16, causal=False))
    yield Call("H16-D256-cap", laid_out(4096, 16, 8, 256, 256, bf16, soft_cap=50.0))
    yield Call("latent-K192-V128", laid_out(4096, 16, 16, 192, 128, bf16))
    yield Call("D128-fp32", laid_out(4096, 32, 8, 128, 128, torch.float32))
