"""Drafts from what once followed the end of a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.spec_decode.ngram_drafts.calls import calls
from ascend_kernels.ops.spec_decode.ngram_drafts.naive import ngram_drafts_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.spec_decode.ngram_drafts.triton import ngram_drafts_triton

    return ngram_drafts_triton


def _fake(
    token_ids: torch.Tensor, lengths: torch.Tensor, min_n: int, max_n: int, drafts: int, max_length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    ids = token_ids.new_empty((token_ids.shape[0], drafts), dtype=torch.int32)
    return ids, token_ids.new_empty(token_ids.shape[0], dtype=torch.int32)


_operator = register(
    "ngram_drafts(Tensor token_ids, Tensor lengths, int min_n, int max_n, int drafts, int max_length) "
    "-> (Tensor, Tensor)",
    naive=ngram_drafts_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def ngram_drafts(
    token_ids: torch.Tensor, lengths: torch.Tensor, min_n: int, max_n: int, drafts: int, max_length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Propose what followed when a text's last tokens occurred before (prompt lookup, Saxena 2023).

    Of all suffixes of ``min_n`` to ``max_n`` tokens the longest that occurs earlier counts, at its first occurrence.

    Args:
        token_ids: int32 or int64 ``[requests, longest]``, any strides: prompts and accepted tokens.
        lengths: int32 ``[requests]``, how many of them are valid.
        min_n: fewest tokens that must agree, at least 1.
        max_n: most tokens that are compared.
        drafts: most tokens to propose, at least 1.
        max_length: tokens that a text may have: no drafts go beyond it.

    Returns:
        int32 ``[requests, drafts]``, the drafts and then -1; int32 ``[requests]``, how many there are.

    Raises:
        ValueError: the shapes do not belong together, or a bound is impossible.
    """
    if token_ids.dim() != 2 or token_ids.shape[1] == 0 or lengths.shape != token_ids.shape[:1]:
        raise ValueError(
            f"ngram_drafts: tokens {tuple(token_ids.shape)} and lengths {tuple(lengths.shape)}: a row per request, "
            "with columns, and a length for each"
        )
    if not 1 <= min_n <= max_n or drafts < 1:
        raise ValueError(
            f"ngram_drafts: min_n {min_n}, max_n {max_n}, drafts {drafts}: 1 <= min_n <= max_n, drafts >= 1"
        )
    return _operator(token_ids, lengths, min_n, max_n, drafts, max_length)
