"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name
from ascend_kernels.ops.lora.lora_shrink.calls import TOKENS


def calls() -> Iterator[Call]:
    """Slices of a merged projection's result; every token's matrix is read for it."""
    for dtype, width, rank in ((torch.bfloat16, 4096, 16), (torch.bfloat16, 1024, 64), (torch.float16, 2048, 8)):
        y, h = meta(TOKENS, 6144, dtype=dtype), meta(TOKENS, rank, dtype=torch.float32)
        b, adapters = meta(8, width, rank, dtype=dtype), torch.arange(TOKENS) % 8
        minimum = TOKENS * (b[0].nbytes + 2 * width * y.itemsize + rank * 4 + 8)
        yield Call(f"N{width}-r{rank}-{short_name(dtype)}", (y, h, b, adapters, 0), minimum)
