"""How often each token occurs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.sampling.token_counts.calls import calls
from ascend_kernels.ops.sampling.token_counts.naive import token_counts_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.sampling.token_counts.triton import token_counts_triton

    return token_counts_triton


def _fake(tokens: torch.Tensor, vocab: int) -> torch.Tensor:
    return tokens.new_empty((tokens.shape[0], vocab), dtype=torch.int32)


_operator = register(
    "token_counts(Tensor tokens, int vocab) -> Tensor",
    naive=token_counts_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def token_counts(tokens: torch.Tensor, vocab: int) -> torch.Tensor:
    """Count the tokens of each row.

    Args:
        tokens: int32 or int64 ``[rows, length]``, any strides. Ids outside ``[0, vocab)`` (padding) are not counted.
        vocab: how many tokens there are.

    Returns:
        int32 ``[rows, vocab]``.

    Raises:
        ValueError: the tokens are no matrix of integers.
    """
    if tokens.dim() != 2 or tokens.dtype not in (torch.int32, torch.int64):
        raise ValueError(
            f"token_counts: tokens {tuple(tokens.shape)} {tokens.dtype}: an int32 or int64 matrix is needed"
        )
    return _operator(tokens, vocab)
