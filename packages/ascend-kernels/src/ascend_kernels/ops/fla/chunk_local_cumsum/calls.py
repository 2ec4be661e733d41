"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """Decays per head and per key channel."""
    chunks = [meta(64, dtype=torch.int32) for _ in range(2)]
    for shape in ((4096, 32), (4096, 16), (4096, 32, 128)):
        label = "-".join(f"{size}" for size in shape)
        yield Call(label, (meta(*shape, dtype=torch.float32), *chunks, 64, False, 1.0))
