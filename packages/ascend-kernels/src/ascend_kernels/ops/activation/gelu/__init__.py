"""The Gaussian error linear unit and its approximations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.activation.gelu.calls import calls
from ascend_kernels.ops.activation.gelu.naive import gelu_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.activation.gelu.triton import gelu_triton

    return gelu_triton


def _fake(x: torch.Tensor, approximate: str) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_operator = register(
    "gelu(Tensor x, str approximate) -> Tensor",
    naive=gelu_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """``x * Φ(x)`` (Hendrycks and Gimpel 2016, arXiv 1606.08415).

    Args:
        x: fp16, bf16 or fp32, any shape and strides.
        approximate: ``none`` (the error function), ``tanh``, or ``quick``: ``x * sigmoid(1.702 x)``.

    Returns:
        A contiguous tensor of ``x``'s shape and dtype; arithmetic is in fp32, rounded once.

    Raises:
        ValueError: the approximation is unknown.
    """
    if approximate not in ("none", "tanh", "quick"):
        raise ValueError(f"gelu: approximate={approximate!r}; none, tanh or quick are allowed")
    return _operator(x, approximate)
