"""A multiple of one tensor plus another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.activation.muls_add.calls import calls
from ascend_kernels.ops.activation.muls_add.naive import muls_add_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.activation.muls_add.triton import muls_add_triton

    return muls_add_triton


def _fake(x: torch.Tensor, y: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_operator = register(
    "muls_add(Tensor x, Tensor y, float scale) -> Tensor",
    naive=muls_add_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def muls_add(x: torch.Tensor, y: torch.Tensor, scale: float) -> torch.Tensor:
    """``x * scale + y``, rounded once.

    Args:
        x: fp16, bf16 or fp32, any shape and strides.
        y: the same shape and dtype.
        scale: any number.

    Returns:
        A contiguous tensor of ``x``'s shape and dtype.

    Raises:
        ValueError: shapes or dtypes differ.
    """
    if x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError(f"muls_add: {tuple(x.shape)} {x.dtype} and {tuple(y.shape)} {y.dtype} must be alike")
    return _operator(x, y, scale)
