"""Inverses of unit lower triangular blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.chunk_index import ChunkIndex
from ascend_kernels.ops.fla.solve_tril.calls import calls
from ascend_kernels.ops.fla.solve_tril.naive import solve_tril_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.solve_tril.triton import solve_tril_triton

    return solve_tril_triton


def _fake(matrix: torch.Tensor, first: torch.Tensor, end: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_like(matrix, dtype=dtype, memory_format=torch.contiguous_format)


_operator = register(
    "solve_tril(Tensor matrix, Tensor first, Tensor end, ScalarType dtype) -> Tensor",
    naive=solve_tril_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def solve_tril(matrix: torch.Tensor, index: ChunkIndex, dtype: torch.dtype | None = None) -> torch.Tensor:
    """``(I + A)^-1`` for the strictly lower triangular ``A`` of each chunk and head.

    Inverses of blocks of 2, 4, 8, ... tokens are merged: ``inv([[P, 0], [C, Q]]) = [[P', 0], [-Q' C P', Q']]`` with
    ``P' = inv(P)`` and ``Q' = inv(Q)``.

    Args:
        matrix: fp16, bf16 or fp32 ``[tokens, heads, chunk]``, from :func:`ascend_kernels.scaled_dot_kkt`; what lies on
            and above the diagonal is not looked at. ``chunk`` is a power of two of at least 16.
        index: from :func:`ascend_kernels.chunk_index`.
        dtype: of the result; default that of ``matrix``. Half-precision inputs on CUDA are merged in fp16, which holds
            what normalised keys and ``beta <= 2`` can give.
    """
    return _operator(matrix, index.first, index.end, dtype or matrix.dtype)
