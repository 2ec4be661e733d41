"""Tokens' rows in the order of experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.moe.moe_permute.calls import calls
from ascend_kernels.ops.moe.moe_permute.naive import moe_permute_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.moe.moe_permute.triton import moe_permute_triton

    return moe_permute_triton


def _fake(x: torch.Tensor, positions: torch.Tensor, rows: int) -> torch.Tensor:
    return x.new_empty(rows, x.shape[1])


_operator = register(
    "moe_permute(Tensor x, Tensor positions, SymInt rows) -> Tensor",
    naive=moe_permute_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def moe_permute(x: torch.Tensor, positions: torch.Tensor, rows: int | None = None) -> torch.Tensor:
    """``y[positions[t, i]] = x[t]`` for every assignment that takes part.

    Args:
        x: ``[tokens, columns]`` of any dtype; rows strided at will.
        positions: int32 ``[tokens, k]``: :func:`ascend_kernels.expert_positions`; -1 takes no part.
        rows: of the result; more than any position. The default has room for every assignment.

    Returns:
        ``[rows, columns]``; rows that no assignment has are not written.

    Raises:
        ValueError: positions that are no matrix with a row per token.
    """
    if x.dim() != 2 or positions.dim() != 2 or positions.shape[0] != x.shape[0]:
        raise ValueError(
            f"moe_permute: x of shape {tuple(x.shape)} and positions {tuple(positions.shape)}: [tokens, columns] and "
            "[tokens, k] go"
        )
    if x.stride(1) != 1:
        x = x.contiguous()
    return _operator(x, positions, positions.numel() if rows is None else rows)
