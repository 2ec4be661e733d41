"""GELU of a gate, multiplied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.activation.gelu_and_mul.calls import calls
from ascend_kernels.ops.activation.gelu_and_mul.naive import gelu_and_mul_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.activation.gelu_and_mul.triton import gelu_and_mul_triton

    return gelu_and_mul_triton


def _fake(x: torch.Tensor, *_: object) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))


_operator = register(
    "gelu_and_mul(Tensor x, str approximate) -> Tensor",
    naive=gelu_and_mul_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def gelu_and_mul(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """``gelu(gate) * up`` of gate and up side by side (GEGLU, Shazeer 2020, arXiv 2002.05202).

    Args:
        x: fp16, bf16 or fp32 ``[..., 2 * columns]``: the gate's columns, then up's.
        approximate: as of :func:`ascend_kernels.gelu`.

    Returns:
        A contiguous tensor ``[..., columns]`` of ``x``'s dtype; arithmetic is in fp32, rounded once.

    Raises:
        ValueError: rows of odd length, or an unknown approximation.
    """
    if x.shape[-1] % 2 or approximate not in ("none", "tanh", "quick"):
        raise ValueError(
            f"gelu_and_mul: rows of {x.shape[-1]} elements, approximate={approximate!r}: an even length and none, tanh "
            "or quick are allowed"
        )
    return _operator(x, approximate)
