"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Each form in bf16."""
    dtype = torch.bfloat16
    x = meta(1024, 4096, dtype=dtype)
    for approximate in ("none", "tanh", "quick"):
        yield Call(f"T1024-H4096-{approximate}-{short_name(dtype)}", (x, approximate), 2 * x.nbytes)
