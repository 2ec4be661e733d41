"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta

ROWS = 8192


def calls() -> Iterator[Call]:
    """Heads of gated delta nets and of Kimi's linear attention, Mamba's groups."""
    x, weight = meta(ROWS, 128, dtype=torch.bfloat16), meta(128, dtype=torch.float32)
    minimum = 3 * x.nbytes + weight.nbytes
    yield Call("gdn-D128-silu-after", (x, weight, None, x, 1e-6, 128, True, True, False), minimum)
    yield Call("kda-D128-sigmoid-after", (x, weight, None, x, 1e-6, 128, True, True, True), minimum)
    yield Call("layer-D128-bias", (x, weight, weight, x, 1e-6, 128, True, False, False), minimum + weight.nbytes)
    yield Call("no-gate-D128", (x, weight, None, None, 1e-6, 128, True, True, False), 2 * x.nbytes + weight.nbytes)
    rows, wide = meta(384, 8192, dtype=torch.bfloat16), meta(8192, dtype=torch.bfloat16)
    for size in (1024, 4096):
        yield Call(
            f"mamba-H8192-G{8192 // size}-silu-before",
            (rows, wide, None, rows, 1e-5, size, False, True, False),
            3 * rows.nbytes + wide.nbytes,
        )
