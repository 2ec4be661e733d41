"""SwiGLU, with what models vary in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.activation.swiglu.calls import calls
from ascend_kernels.ops.activation.swiglu.naive import swiglu_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.activation.swiglu.triton import swiglu_triton

    return swiglu_triton


def _fake(x: torch.Tensor, *_: object) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))


_operator = register(
    "swiglu(Tensor x, float alpha, float bias, float limit, bool interleaved) -> Tensor",
    naive=swiglu_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def swiglu(
    x: torch.Tensor, alpha: float = 1.0, bias: float = 0.0, limit: float = 0.0, interleaved: bool = False
) -> torch.Tensor:
    """``gate * sigmoid(alpha * gate) * (up + bias)`` of gate and up side by side (Shazeer 2020, arXiv 2002.05202).

    The defaults are the plain form, ``silu(gate) * up``; GPT-OSS has alpha 1.702, bias 1, limit 7 and interleaved rows.

    Args:
        x: fp16, bf16 or fp32 ``[..., 2 * columns]``: the gate's columns, then up's.
        alpha: factor inside the sigmoid.
        bias: added to up.
        limit: the gate is at most ``limit`` and up within ``±limit`` before anything else; 0 turns this off.
        interleaved: gate and up alternate within a row instead.

    Returns:
        A contiguous tensor ``[..., columns]`` of ``x``'s dtype; arithmetic is in fp32, rounded once.

    Raises:
        ValueError: rows of odd length, or a negative limit.
    """
    if x.shape[-1] % 2 or limit < 0:
        raise ValueError(f"swiglu: rows of {x.shape[-1]} elements and limit {limit}: an even length and 0 or more go")
    return _operator(x, alpha, bias, limit, interleaved)
