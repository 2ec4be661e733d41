"""Tokens to emit where a draft is rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.spec_decode.recovered_tokens.calls import calls
from ascend_kernels.ops.spec_decode.recovered_tokens.naive import recovered_tokens_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.spec_decode.recovered_tokens.triton import recovered_tokens_triton

    return recovered_tokens_triton


def _fake(target_probs: torch.Tensor, *_: object) -> torch.Tensor:
    return target_probs.new_empty(target_probs.shape[0], dtype=torch.int32)


_operator = register(
    "recovered_tokens(Tensor target_probs, Tensor? draft_probs, Tensor draft_token_ids, Tensor temperature, "
    "Tensor seeds, Tensor positions, Tensor request_of_row, Tensor? target_indices) -> Tensor",
    naive=recovered_tokens_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def recovered_tokens(
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor | None,
    draft_token_ids: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    positions: torch.Tensor,
    request_of_row: torch.Tensor,
    target_indices: torch.Tensor | None = None,
) -> torch.Tensor:
    """Sample, for each draft, the token to emit if it is rejected (Leviathan et al. 2023, arXiv 2211.17192).

    The sample is of ``max(p - q, 0)``, normalised: ``argmax(max(p - q, 0) / e)`` with Exp(1) noise ``e``, a function of
    the request's seed, the row's position and the token (that of :func:`ascend_kernels.gumbel_argmax`). For greedy
    requests it is the argmax of ``p``. Of tied tokens the lowest id wins.

    Args:
        target_probs: fp32 ``[rows, columns]``, ``p``: the target's probabilities, a row per draft. Not changed.
        draft_probs: fp32 ``[rows, vocab]``, ``q``: the drafter's probabilities; None: each draft was certain.
        draft_token_ids: int32 or int64 ``[rows]``; where it is negative nothing was proposed and ``p`` is sampled.
        temperature: fp32 ``[requests]``; 0 marks greedy requests.
        seeds: int64 ``[requests]``.
        positions: int64 ``[rows]``.
        request_of_row: int32 or int64 ``[rows]``.
        target_indices: int32 or int64 ``[rows, columns]``, the token of each column where the columns are candidates
            gathered from a sharded vocabulary, in any order; None: column ``i`` is token ``i``.

    Returns:
        int32 ``[rows]``: token ids.

    Raises:
        ValueError: the shapes do not belong together, or probabilities are not fp32.
    """
    rows = target_probs.shape[:1]
    matrices = {"draft_probs": draft_probs, "target_indices": target_indices}
    if target_probs.dim() != 2 or target_probs.shape[1] == 0 or target_probs.dtype != torch.float32:
        raise ValueError(
            f"recovered_tokens: target_probs {tuple(target_probs.shape)} {target_probs.dtype}: fp32 [rows, columns] "
            "with at least one column is needed"
        )
    for name, matrix in matrices.items():
        alike = name == "target_indices" or target_indices is None
        if matrix is not None and (matrix.shape[:1] != rows or (alike and matrix.shape != target_probs.shape)):
            raise ValueError(
                f"recovered_tokens: {name} {tuple(matrix.shape)} with target_probs {tuple(target_probs.shape)}"
            )
    if draft_probs is not None and draft_probs.dtype != torch.float32:
        raise ValueError(f"recovered_tokens: draft_probs are {draft_probs.dtype}; fp32 is needed")
    for name, vector in (
        ("draft_token_ids", draft_token_ids),
        ("positions", positions),
        ("request_of_row", request_of_row),
    ):
        if vector.shape != rows:
            raise ValueError(f"recovered_tokens: {name} {tuple(vector.shape)} for {rows[0]} rows")
    if temperature.shape != seeds.shape or temperature.dim() != 1:
        raise ValueError(
            f"recovered_tokens: temperature {tuple(temperature.shape)} and seeds {tuple(seeds.shape)}: one per request"
        )
    return _operator(
        target_probs, draft_probs, draft_token_ids, temperature, seeds, positions, request_of_row, target_indices
    )
