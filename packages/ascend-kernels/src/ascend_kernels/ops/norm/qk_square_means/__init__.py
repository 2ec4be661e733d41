"""A rank's share of the mean squares of whole rows of query and key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.norm.qk_square_means.calls import calls
from ascend_kernels.ops.norm.qk_square_means.naive import qk_square_means_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.norm.qk_square_means.triton import qk_square_means_triton

    return qk_square_means_triton


def _fake(qkv: torch.Tensor, *_: object) -> torch.Tensor:
    return qkv.new_empty(qkv.shape[0], 2, dtype=torch.float32)


_operator = register(
    "qk_square_means(Tensor qkv, int q_columns, int k_columns, int ranks) -> Tensor",
    naive=qk_square_means_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def qk_square_means(qkv: torch.Tensor, q_columns: int, k_columns: int, ranks: int) -> torch.Tensor:
    """What this rank adds to the mean squares of rows whose columns are spread over ``ranks`` ranks.

    Summed over the ranks (an all-reduce, the caller's), the result is what ``means`` of
    :func:`ascend_kernels.split_qkv_norm_rope` takes.

    Args:
        qkv: fp16, bf16 or fp32 ``[tokens, columns]``; rows strided at will.
        q_columns: columns of query, which come first.
        k_columns: columns of key, which follow.
        ranks: ranks that share the rows, each with as many columns.

    Returns:
        fp32 ``[tokens, 2]``: ``sum(q²) / (q_columns * ranks)`` and ``sum(k²) / (k_columns * ranks)``.

    Raises:
        ValueError: fewer columns than query and key take, or counts below 1.
    """
    if qkv.dim() != 2 or min(q_columns, k_columns, ranks) < 1 or qkv.shape[1] < q_columns + k_columns:
        raise ValueError(
            f"qk_square_means: qkv has shape {tuple(qkv.shape)}; {q_columns} columns of query and {k_columns} of key "
            f"on each of {ranks} ranks need rows at least that wide, and counts of 1 or more"
        )
    return _operator(qkv if qkv.stride(1) == 1 else qkv.contiguous(), q_columns, k_columns, ranks)
