"""Tokens' rows as weighted sums of what their experts give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.moe.moe_unpermute.calls import calls
from ascend_kernels.ops.moe.moe_unpermute.naive import moe_unpermute_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.moe.moe_unpermute.triton import moe_unpermute_triton

    return moe_unpermute_triton


def _fake(y: torch.Tensor, positions: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    return y.new_empty(positions.shape[0], y.shape[1])


_operator = register(
    "moe_unpermute(Tensor y, Tensor positions, Tensor? weights) -> Tensor",
    naive=moe_unpermute_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def moe_unpermute(y: torch.Tensor, positions: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
    """``x[t] = sum over i of weights[t, i] * y[positions[t, i]]``, in the order of ``i``: no other token has a say.

    Args:
        y: fp16, bf16 or fp32 ``[rows, columns]``; rows strided at will.
        positions: int32 ``[tokens, k]``: :func:`ascend_kernels.expert_positions`; -1 adds nothing.
        weights: ``[tokens, k]`` of any float dtype, or None for ones.

    Returns:
        ``[tokens, columns]`` of ``y``'s dtype, summed up in fp32 and rounded once.

    Raises:
        ValueError: shapes that do not belong together.
    """
    if y.dim() != 2 or positions.dim() != 2 or (weights is not None and weights.shape != positions.shape):
        raise ValueError(
            f"moe_unpermute: y of shape {tuple(y.shape)}, positions {tuple(positions.shape)}, weights "
            f"{None if weights is None else tuple(weights.shape)}: [rows, columns] and twice [tokens, k] go"
        )
    return _operator(y if y.stride(1) == 1 else y.contiguous(), positions, weights)
