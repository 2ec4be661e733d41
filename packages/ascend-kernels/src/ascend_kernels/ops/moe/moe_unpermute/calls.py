"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Hidden sizes of common models, eight experts per token, weighted and not."""
    tokens, k = 96, 8
    positions = torch.arange(tokens * k, dtype=torch.int32).view(tokens, k)
    for columns, dtype, weighted in (
        (2048, torch.bfloat16, True),
        (7168, torch.bfloat16, True),
        (7168, torch.bfloat16, False),
        (4096, torch.float16, True),
    ):
        y = meta(tokens * k, columns, dtype=dtype)
        weights = meta(tokens, k, dtype=torch.float32) if weighted else None
        # Positions and weights are read once for each piece of a row; that is no part of the minimum.
        minimum = y.nbytes + y.nbytes // k + positions.nbytes * (1 + weighted)
        name = f"H{columns}-k{k}-{short_name(dtype)}{'' if weighted else '-plain'}"
        yield Call(name, (y, positions, weights), minimum)
