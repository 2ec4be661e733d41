"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Linear layers (whose weights come transposed) with and without bias, and batches of products."""
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        weight = meta(1, 4096, 2048, dtype=dtype).mT
        yield Call(f"linear-{short_name(dtype)}", (meta(1, 96, 2048, dtype=dtype), weight, None))
    weight = meta(1, 4096, 2048, dtype=torch.bfloat16).mT
    bias = meta(4096, dtype=torch.bfloat16)
    yield Call("bias", (meta(1, 96, 2048, dtype=torch.bfloat16), weight, bias))
    yield Call("batch", (meta(32, 96, 128, dtype=torch.bfloat16), meta(32, 128, 96, dtype=torch.bfloat16), None))
