"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name

HIDDEN = (896, 2048, 4096, 5120, 7168, 8192, 16384)
"""Hidden sizes of common models; the last is read twice on an NPU."""
HEADS = (64, 128, 256)
"""Head sizes of common models, normalised without a weight or with one."""
TOKENS = 768


def calls() -> Iterator[Call]:
    """Rows of hidden states, Gemma's form, and heads, in the dtypes that models have."""
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for hidden in HIDDEN if dtype == torch.bfloat16 else (4096, 8192):
            x, weight = meta(TOKENS, hidden, dtype=dtype), meta(hidden, dtype=dtype)
            minimum = 2 * x.nbytes + weight.nbytes if hidden <= 8192 else None
            yield Call(f"T{TOKENS}-H{hidden}-{short_name(dtype)}", (x, weight, 1e-6, False), minimum)
    x, weight = meta(TOKENS, 4096, dtype=torch.bfloat16), meta(4096, dtype=torch.bfloat16)
    yield Call("gemma", (x, weight, 1e-6, True), 2 * x.nbytes + weight.nbytes)
    for size in HEADS:
        heads = meta(TOKENS, 32, size, dtype=torch.bfloat16)
        yield Call(f"heads-D{size}", (heads, None, 1e-6, False), 2 * heads.nbytes)
        rows = meta(TOKENS, 48 * size, dtype=torch.bfloat16)
        inside = rows[:, : 32 * size].unflatten(-1, (32, size))
        weight = meta(size, dtype=torch.bfloat16)
        yield Call(f"heads-in-rows-D{size}", (inside, weight, 1e-6, False), 2 * heads.nbytes + weight.nbytes)
