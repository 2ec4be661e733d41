"""Euclidean normalisation of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.l2norm.calls import calls
from ascend_kernels.ops.fla.l2norm.naive import l2norm_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.l2norm.triton import l2norm_triton

    return l2norm_triton


def _fake(x: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_operator = register(
    "l2norm(Tensor x, float eps) -> Tensor",
    naive=l2norm_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def l2norm(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """``x / sqrt(sum(x²) + eps)`` along the last dimension, in fp32, rounded once.

    Args:
        x: fp16, bf16 or fp32 ``[..., columns]``, any strides.
        eps: added to the sum of the squares.
    """
    return _operator(x, eps)
