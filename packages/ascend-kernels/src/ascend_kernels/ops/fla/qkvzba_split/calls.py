"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """Heads of Qwen3-Next on one rank."""
    qkvz, ba = meta(2048, 16 * 768, dtype=torch.bfloat16), meta(2048, 64, dtype=torch.bfloat16)
    yield Call("qwen3-next", (qkvz, ba, 16, 32, 128, 128), 2 * (qkvz.nbytes + ba.nbytes))
