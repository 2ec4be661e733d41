"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name
from ascend_kernels.ops.norm.rms_norm.calls import HIDDEN, TOKENS


def calls() -> Iterator[Call]:
    """Rows of hidden states in the dtypes that models have, and Gemma's form."""
    for dtype, sizes in (
        (torch.bfloat16, HIDDEN),
        (torch.float16, (4096,)),
        (torch.float32, (4096,)),
    ):
        for hidden in sizes:
            x, weight = meta(TOKENS, hidden, dtype=dtype), meta(hidden, dtype=dtype)
            minimum = 4 * x.nbytes + weight.nbytes if hidden <= 8192 else None
            for gemma in (False, True) if hidden == 4096 else (False,):
                label = f"T{TOKENS}-H{hidden}-{short_name(dtype)}" + ("-gemma" if gemma else "")
                yield Call(label, (x, x, weight, 1e-6, gemma), minimum)
