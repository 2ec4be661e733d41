"""Temperature and min-p, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.sampling.rows.checks import check_in_place, check_requests
from ascend_kernels.ops.sampling.scale_logits.calls import calls
from ascend_kernels.ops.sampling.scale_logits.naive import scale_logits_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.sampling.scale_logits.triton import scale_logits_triton

    return scale_logits_triton


_operator = register(
    "scale_logits(Tensor(a!) logits, Tensor temperature, Tensor? min_p, Tensor? request_of_row) -> ()",
    naive=scale_logits_naive,
    triton=_triton,
    calls=calls,
)


def scale_logits(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    min_p: torch.Tensor | None = None,
    request_of_row: torch.Tensor | None = None,
) -> None:
    """Divide logits by temperatures and exclude improbable tokens, in place.

    A token whose probability after the division is below ``min_p`` times that of the most probable one becomes -inf.

    Args:
        logits: fp16, bf16 or fp32 ``[rows, vocab]``, neighbouring columns; written.
        temperature: fp32 ``[requests]``; 0, as greedy requests have it, counts as 1.
        min_p: fp32 ``[requests]``; 0 excludes nothing.
        request_of_row: int32 or int64 ``[rows]``, the request of each row; None: row ``i`` is request ``i``.

    Raises:
        ValueError: the shapes do not belong together, or the columns of the logits are not neighbours.
    """
    check_requests("scale_logits", logits, request_of_row, temperature=temperature, min_p=min_p)
    check_in_place("scale_logits", logits)
    _operator(logits, temperature, min_p, request_of_row)
