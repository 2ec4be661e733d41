"""Where each token's row goes when rows are sorted by expert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.moe.expert_positions.calls import calls
from ascend_kernels.ops.moe.expert_positions.naive import expert_positions_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.moe.expert_positions.triton import expert_positions_triton

    return expert_positions_triton


def _fake(ids: torch.Tensor, first: int, experts: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    new = ids.new_empty
    return new(ids.shape, dtype=torch.int32), new(experts, dtype=torch.int32), new(experts + 1, dtype=torch.int32)


_operator = register(
    "expert_positions(Tensor ids, int first, int experts) -> (Tensor, Tensor, Tensor)",
    naive=expert_positions_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def expert_positions(
    ids: torch.Tensor, experts: int, first: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sort the assignments of tokens to experts by expert, in the order of tokens within one, without a host copy.

    Args:
        ids: int32 or int64 ``[tokens, k]``, expert numbers; any strides.
        experts: how many experts are here: ``first`` to ``first + experts - 1``. Others, and -1, take no part.
        first: number of the first.

    Returns:
        int32 ``[tokens, k]``, each assignment's row, -1 where it takes no part; int32 ``[experts]``, rows of each
        expert; int32 ``[experts + 1]``, where each expert's rows begin, and their total.

    Raises:
        ValueError: no experts, ids that are no matrix, or 2**24 of them.
    """
    if ids.dim() != 2 or experts < 1 or ids.numel() >= 2**24:
        raise ValueError(
            f"expert_positions: ids of shape {tuple(ids.shape)} and {experts} experts: [tokens, k] with fewer than "
            "2**24 elements, and 1 or more experts go"
        )
    return _operator(ids, first, experts)
