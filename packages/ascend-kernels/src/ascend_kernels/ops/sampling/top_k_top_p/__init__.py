"""Truncation of distributions to their most probable tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.sampling.rows.checks import check_in_place, check_requests
from ascend_kernels.ops.sampling.top_k_top_p.calls import calls
from ascend_kernels.ops.sampling.top_k_top_p.naive import top_k_top_p_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.sampling.top_k_top_p.triton import top_k_top_p_triton

    return top_k_top_p_triton


_operator = register(
    "top_k_top_p(Tensor(a!) logits, Tensor? top_k, Tensor? top_p, Tensor? request_of_row, bool exhaustive) -> ()",
    naive=top_k_top_p_naive,
    triton=_triton,
    calls=calls,
)


def top_k_top_p(
    logits: torch.Tensor,
    top_k: torch.Tensor | None = None,
    top_p: torch.Tensor | None = None,
    request_of_row: torch.Tensor | None = None,
    *,
    exhaustive: bool = False,
) -> None:
    """Exclude, in place, all but the most probable tokens of each row, without sorting it.

    First ``top_k``: a token stays if fewer than k tokens have a larger logit. Then ``top_p`` (Holtzman et al. 2020,
    arXiv 1904.09751) on what is left, its probabilities summing to 1: a token stays if the tokens with larger logits
    have together less than p. Equal logits stay or go together, so that more than k tokens stay where the k-th largest
    logit is tied; the most probable token always stays. What goes becomes -inf.

    Args:
        logits: fp16, bf16 or fp32 ``[rows, vocab]``, neighbouring columns; written. Scaled by the temperature already.
        top_k: int32 or int64 ``[requests]``; no limit where it is below 1 or not below the vocabulary's size.
        top_p: fp32 ``[requests]``; no limit where it is 1 or more. Masses are summed in fp32: a token whose mass in
            front equals p but for rounding may stay or go.
        request_of_row: int32 or int64 ``[rows]``, the request of each row; None: row ``i`` is request ``i``.
        exhaustive: search every row among all its values at once; faster if most rows keep thousands of tokens.

    Raises:
        ValueError: the shapes do not belong together, or columns are not neighbours.
    """
    check_requests("top_k_top_p", logits, request_of_row, top_k=top_k, top_p=top_p)
    check_in_place("top_k_top_p", logits)
    _operator(logits, top_k, top_p, request_of_row, exhaustive)
