"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """States of a linear attention layer and of its convolution."""
    slots = meta(32, dtype=torch.int32)
    yield Call("recurrent", (meta(64, 32, 128, 128, dtype=torch.float32), slots, slots))
    yield Call("convolution", (meta(64, 3, 8192, dtype=torch.bfloat16), slots, slots))
