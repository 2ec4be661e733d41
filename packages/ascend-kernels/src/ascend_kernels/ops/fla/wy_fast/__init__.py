"""The WY representation of a chunk of delta rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.chunk_index import ChunkIndex
from ascend_kernels.ops.fla.wy_fast.calls import calls
from ascend_kernels.ops.fla.wy_fast.naive import wy_fast_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.wy_fast.triton import wy_fast_triton

    return wy_fast_triton


def _fake(k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor, *_: object) -> tuple[torch.Tensor, torch.Tensor]:
    return k.new_empty(*beta.shape, k.shape[2]), v.new_empty(v.shape)


_operator = register(
    "wy_fast(Tensor k, Tensor v, Tensor beta, Tensor g_cumsum, Tensor inverse, Tensor first, Tensor end) "
    "-> (Tensor, Tensor)",
    naive=wy_fast_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def wy_fast(
    k: torch.Tensor,
    v: torch.Tensor,
    beta: torch.Tensor,
    g_cumsum: torch.Tensor,
    inverse: torch.Tensor,
    index: ChunkIndex,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``w = T (beta exp(G) k)`` and ``u = T (beta v)`` (Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464).

    With them the deltas of a chunk are ``u - w S``, where ``S`` is the state at its start.

    Args:
        k: ``[tokens, key heads, K]``, normalised.
        v: ``[tokens, value heads, V]``.
        beta: ``[tokens, value heads]``.
        g_cumsum: fp32 ``[tokens, value heads]``, chunk-local sums.
        inverse: ``[tokens, value heads, chunk]``, from :func:`ascend_kernels.solve_tril`.
        index: from :func:`ascend_kernels.chunk_index`.

    Returns:
        ``w [tokens, value heads, K]`` and ``u [tokens, value heads, V]``.
    """
    return _operator(k, v, beta, g_cumsum, inverse, index.first, index.end)
