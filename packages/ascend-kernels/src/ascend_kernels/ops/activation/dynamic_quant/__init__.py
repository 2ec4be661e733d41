"""int8 values with a scale per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.activation.dynamic_quant.calls import calls
from ascend_kernels.ops.activation.dynamic_quant.naive import dynamic_quant_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.activation.dynamic_quant.triton import dynamic_quant_triton

    return dynamic_quant_triton


def _fake(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.empty_like(x, dtype=torch.int8, memory_format=torch.contiguous_format),
        x.new_empty(x.shape[:-1], dtype=torch.float32),
    )


_operator = register(
    "dynamic_quant(Tensor x) -> (Tensor, Tensor)",
    naive=dynamic_quant_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def dynamic_quant(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise each row symmetrically: ``scale = max|row| / 127``, ``round(row / scale)``, ties to even.

    Args:
        x: fp16, bf16 or fp32 ``[..., columns]``.

    Returns:
        int8 ``[..., columns]``, and fp32 scales ``[...]``; a row of zeros has scale 0.
    """
    return _operator(x)
