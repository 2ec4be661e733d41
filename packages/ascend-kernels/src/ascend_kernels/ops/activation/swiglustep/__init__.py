"""SwiGLU whose activation is cut off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.activation.swiglustep.calls import calls
from ascend_kernels.ops.activation.swiglustep.naive import swiglustep_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.activation.swiglustep.triton import swiglustep_triton

    return swiglustep_triton


def _fake(x: torch.Tensor, *_: object) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))


_operator = register(
    "swiglustep(Tensor x, float limit) -> Tensor",
    naive=swiglustep_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def swiglustep(x: torch.Tensor, limit: float = 7.0) -> torch.Tensor:
    """``min(silu(gate), limit) * clamp(up, -limit, limit)`` of gate and up side by side (Step-3.5).

    Args:
        x: fp16, bf16 or fp32 ``[..., 2 * columns]``: the gate's columns, then up's.
        limit: above 0.

    Returns:
        A contiguous tensor ``[..., columns]`` of ``x``'s dtype; arithmetic is in fp32, rounded once.

    Raises:
        ValueError: rows of odd length, or no positive limit.
    """
    if x.shape[-1] % 2 or limit <= 0:
        raise ValueError(f"swiglustep: rows of {x.shape[-1]} elements and limit {limit}: an even length and above 0 go")
    return _operator(x, limit)
