"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Routers of Mixtral, Qwen3, DeepSeek-V2 and -V3 and Kimi."""
    tokens = 480
    for experts, k, sigmoid, groups, top_groups, biased, dtype in (
        (8, 2, False, 1, 1, False, torch.bfloat16),
        (128, 8, False, 1, 1, False, torch.bfloat16),
        (160, 6, False, 8, 3, False, torch.float32),
        (256, 8, True, 8, 4, True, torch.float32),
        (384, 8, True, 1, 1, True, torch.float32),
    ):
        logits = meta(tokens, experts, dtype=dtype)
        bias = meta(experts, dtype=torch.float32) if biased else None
        minimum = logits.nbytes + tokens * k * 8 + (bias.nbytes if bias is not None else 0)
        name = f"E{experts}-k{k}-G{groups}-{'sigmoid' if sigmoid else 'softmax'}-{short_name(dtype)}"
        yield Call(name, (logits, k, sigmoid, bias, groups, top_groups, True, 1.0), minimum)
