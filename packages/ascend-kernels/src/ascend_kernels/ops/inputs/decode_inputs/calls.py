"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name
from ascend_kernels.ops.inputs.decode_inputs.plan import BLOCKS


def calls() -> Iterator[Call]:
    """Every block size the plan can choose, with and without last step's samples."""
    for block in BLOCKS:
        for sampled in (None, torch.int32, torch.int64):
            for slot in (torch.int32, torch.int64):
                name = "none" if sampled is None else short_name(sampled)
                yield Call(
                    f"R{block}-previous-{name}-slots-{short_name(slot)}",
                    (
                        meta(3, block, dtype=torch.int32),
                        None if sampled is None else meta(block, 1, dtype=sampled),
                        meta(block, 64, dtype=torch.int32),
                        128,
                        meta(block, dtype=torch.int32),
                        meta(block, dtype=torch.int64),
                        meta(block, dtype=torch.int32),
                        meta(block, dtype=slot),
                        -1,
                    ),
                )
