"""Tokens that a grammar does not allow, taken out of the logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.structured.grammar_bitmask.calls import calls
from ascend_kernels.ops.structured.grammar_bitmask.naive import grammar_bitmask_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.structured.grammar_bitmask.triton import grammar_bitmask_triton

    return grammar_bitmask_triton


_operator = register(
    "grammar_bitmask(Tensor(a!) logits, Tensor bitmask, Tensor rows) -> ()",
    naive=grammar_bitmask_naive,
    triton=_triton,
    calls=calls,
)


def grammar_bitmask(logits: torch.Tensor, bitmask: torch.Tensor, rows: torch.Tensor | None = None) -> None:
    """``logits[rows[i], v] = -inf`` wherever bit ``v % 32`` of ``bitmask[i, v // 32]`` is 0, in place.

    Args:
        logits: fp16, bf16 or fp32 ``[batch, vocabulary]``, rows strided at will, tokens neighbours.
        bitmask: int32 ``[masks, at least vocabulary / 32]``, as xgrammar fills them; rows strided at will.
        rows: int32 or int64 ``[masks]``: the row that each mask is for, no row twice; -1 skips a mask.
            Default: its own.

    Raises:
        ValueError: shapes or dtypes that do not go together.
    """
    words = -(-logits.shape[-1] // 32)
    if logits.dim() != 2 or bitmask.dim() != 2 or bitmask.dtype != torch.int32 or bitmask.shape[1] < words:
        raise ValueError(
            f"grammar_bitmask: logits {tuple(logits.shape)} and bitmask {bitmask.dtype} {tuple(bitmask.shape)}: "
            f"[batch, vocabulary] and int32 [masks, {words} or more] go"
        )
    if (rows is None and bitmask.shape[0] > logits.shape[0]) or (rows is not None and rows.shape != bitmask.shape[:1]):
        raise ValueError(
            f"grammar_bitmask: {bitmask.shape[0]} masks, {logits.shape[0]} rows of logits, rows "
            f"{None if rows is None else tuple(rows.shape)}: a row for every mask goes"
        )
    if logits.stride(1) != 1 or (bitmask.shape[1] > 1 and bitmask.stride(1) != 1):
        raise ValueError(
            f"grammar_bitmask: strides of logits {logits.stride()} and bitmask {bitmask.stride()} must end in 1"
        )
    if rows is None:
        rows = torch.arange(bitmask.shape[0], device=logits.device)
    _operator(logits, bitmask, rows.contiguous())
