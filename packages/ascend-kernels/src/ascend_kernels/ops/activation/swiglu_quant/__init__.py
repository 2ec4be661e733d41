"""SwiGLU and the quantisation of its result, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.activation.swiglu_quant.calls import calls
from ascend_kernels.ops.activation.swiglu_quant.naive import swiglu_quant_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.activation.swiglu_quant.triton import swiglu_quant_triton

    return swiglu_quant_triton


def _fake(x: torch.Tensor, *_: object) -> tuple[torch.Tensor, torch.Tensor]:
    quantised = x.new_empty((*x.shape[:-1], x.shape[-1] // 2), dtype=torch.int8)
    return quantised, x.new_empty(x.shape[:-1], dtype=torch.float32)


_operator = register(
    "swiglu_quant(Tensor x, Tensor? group_list, bool cumulative, float alpha, float bias, float limit) "
    "-> (Tensor, Tensor)",
    naive=swiglu_quant_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def swiglu_quant(
    x: torch.Tensor,
    group_list: torch.Tensor | None = None,
    *,
    cumulative: bool = False,
    alpha: float = 1.0,
    bias: float = 0.0,
    limit: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``dynamic_quant(swiglu(x))`` without rounding in between, for the rows that experts have received.

    Args:
        x: fp16, bf16 or fp32 ``[rows, 2 * columns]``: the gate's columns, then up's.
        group_list: int32 or int64 ``[groups]``: rows of each group, or with ``cumulative`` the rows up to and with it.
            Only the rows of groups are computed; None computes all.
        cumulative: how ``group_list`` counts.
        alpha: as of :func:`ascend_kernels.swiglu`, and ``bias`` and ``limit`` too.

    Returns:
        int8 ``[rows, columns]`` and fp32 scales ``[rows]``; rows that belong to no group are not written.

    Raises:
        ValueError: rows of odd length, or a negative limit.
    """
    if x.shape[-1] % 2 or limit < 0:
        raise ValueError(f"swiglu_quant: rows of {x.shape[-1]} and limit {limit}: an even length and 0 or more go")
    return _operator(x, group_list, cumulative, alpha, bias, limit)
