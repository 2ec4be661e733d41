"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta


def calls() -> Iterator[Call]:
    """Keys and values of two layers; caches whose blocks are no multiples of a word."""
    blocks = torch.arange(48, dtype=torch.int32)
    layers = [meta(256, 128, 8, 128, dtype=torch.bfloat16) for _ in range(4)]
    yield Call("L2-B128-H8-D128-bf16", (layers, blocks), 4 * 48 * layers[0][0].nbytes + blocks.nbytes)
    yield Call("blocks-int64", (layers, meta(48, dtype=torch.int64)))
    yield Call("bytes", ([meta(256, 7, 3, dtype=torch.int8)], blocks))
