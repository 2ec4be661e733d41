"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ascend_kernels.calls import Call, meta, short_name


def calls() -> Iterator[Call]:
    """Both products of Qwen3-30B's experts at prefill and decode, in every format of weights."""
    experts, hidden, intermediate = 128, 2048, 768
    offsets = meta(experts + 1, dtype=torch.int32)

    def call(rows: int, depth: int, columns: int, swiglu: bool, form: str, dtype: torch.dtype) -> tuple[Any, ...]:
        weight = meta(experts, depth // 2 if form == "int4" else depth, columns, dtype=torch.int8)
        scale = meta(experts, depth // 128 if form == "int4" else 1, columns, dtype=torch.float32)
        x = meta(rows, depth, dtype=torch.int8 if form == "int8" else dtype)
        x_scale = meta(rows, dtype=torch.float32) if form == "int8" else None
        if form == "float":
            weight, scale = weight.to(dtype), None
        return x, weight, offsets, x_scale, scale, None, form == "int4", swiglu, 1.0, 0.0, 0.0, dtype

    for form in ("float", "int8", "int4", "weight_int8"):
        for rows in (32768, 64):
            for swiglu in (True, False):
                depth, columns = (hidden, 2 * intermediate) if swiglu else (intermediate, hidden)
                name = f"M{rows}-K{depth}-N{columns}-{form}"
                yield Call(name, call(rows, depth, columns, swiglu, form, torch.bfloat16))
    yield Call(f"fp16-{short_name(torch.float16)}", call(32768, hidden, 2 * intermediate, True, "float", torch.float16))
