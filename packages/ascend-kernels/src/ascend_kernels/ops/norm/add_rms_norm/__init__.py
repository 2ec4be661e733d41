"""Addition of a residual, then root-mean-square normalisation of the sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.norm.add_rms_norm.calls import calls
from ascend_kernels.ops.norm.add_rms_norm.naive import add_rms_norm_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.norm.add_rms_norm.triton import add_rms_norm_triton

    return add_rms_norm_triton


def _fake(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, gemma: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    return y, torch.empty_like(y)


_operator = register(
    "add_rms_norm(Tensor x, Tensor residual, Tensor weight, float eps, bool gemma) -> (Tensor, Tensor)",
    naive=add_rms_norm_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6, gemma: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """``rms_norm(x + residual)`` and the sum, in one pass.

    The normalisation reads the sum in fp32, before it is rounded to the result's dtype.

    Args:
        x: fp16, bf16 or fp32 ``[..., columns]``, any strides.
        residual: the same shape and dtype.
        weight: ``[columns]``.
        eps: added to the mean of the squares.
        gemma: multiply by ``1 + weight``.

    Returns:
        The normalised rows and the sum, both contiguous, in ``x``'s shape and dtype.

    Raises:
        ValueError: shapes or dtypes do not belong together.
    """
    if x.shape != residual.shape or x.dtype != residual.dtype or weight.shape != x.shape[-1:]:
        raise ValueError(
            f"add_rms_norm: x {tuple(x.shape)} {x.dtype}, residual {tuple(residual.shape)} {residual.dtype}, weight "
            f"{tuple(weight.shape)}: the first two must be alike and the weight as long as a row"
        )
    return _operator(x, residual, weight, eps, gemma)
