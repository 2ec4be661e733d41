"""Root-mean-square normalisation of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.norm.rms_norm.calls import calls
from ascend_kernels.ops.norm.rms_norm.naive import rms_norm_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.norm.rms_norm.triton import rms_norm_triton

    return rms_norm_triton


def _fake(x: torch.Tensor, weight: torch.Tensor | None, eps: float, gemma: bool) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_operator = register(
    "rms_norm(Tensor x, Tensor? weight, float eps, bool gemma) -> Tensor",
    naive=rms_norm_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def rms_norm(
    x: torch.Tensor, weight: torch.Tensor | None = None, eps: float = 1e-6, gemma: bool = False
) -> torch.Tensor:
    """Normalise the last dimension: ``x / sqrt(mean(x²) + eps) * weight`` (Zhang and Sennrich 2019, arXiv 1910.07467).

    Args:
        x: fp16, bf16 or fp32 ``[..., columns]``, any strides.
        weight: ``[columns]``, of any of these dtypes; None multiplies by nothing (the norm of query and key heads).
        eps: added to the mean of the squares.
        gemma: multiply by ``1 + weight``.

    Returns:
        A contiguous tensor of ``x``'s shape and dtype; arithmetic is in fp32, rounded once.

    Raises:
        ValueError: the weight's length is not that of a row.
    """
    if weight is not None and weight.shape != x.shape[-1:]:
        raise ValueError(f"rms_norm: rows have {x.shape[-1]} elements and the weight has shape {tuple(weight.shape)}")
    return _operator(x, weight, eps, gemma)
