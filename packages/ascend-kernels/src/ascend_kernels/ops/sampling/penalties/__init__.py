"""Penalties on tokens that a request has seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.sampling.penalties.calls import calls
from ascend_kernels.ops.sampling.penalties.naive import penalties_naive
from ascend_kernels.ops.sampling.rows.checks import check_in_place, check_requests


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.sampling.penalties.triton import penalties_triton

    return penalties_triton


_operator = register(
    "apply_penalties(Tensor(a!) logits, Tensor prompt_counts, Tensor output_counts, Tensor repetition, "
    "Tensor frequency, Tensor presence, Tensor? request_of_row, Tensor? input_ids, Tensor? draft_index) -> ()",
    naive=penalties_naive,
    triton=_triton,
    calls=calls,
)


def apply_penalties(
    logits: torch.Tensor,
    prompt_counts: torch.Tensor,
    output_counts: torch.Tensor,
    repetition: torch.Tensor,
    frequency: torch.Tensor,
    presence: torch.Tensor,
    request_of_row: torch.Tensor | None = None,
    input_ids: torch.Tensor | None = None,
    draft_index: torch.Tensor | None = None,
) -> None:
    """Penalise tokens that a request has seen, in place.

    Repetition (Keskar et al. 2019, arXiv 1909.05858): logits of tokens in the prompt or the output are divided by the
    penalty where positive and multiplied where not. Then ``frequency * count`` and ``presence`` (if the count is not
    0) are subtracted for tokens in the output (OpenAI's API).

    Args:
        logits: fp16, bf16 or fp32 ``[rows, vocab]``, neighbouring columns; written.
        prompt_counts: int32 ``[requests, vocab]``, neighbouring columns: tokens of the prompts
            (:func:`ascend_kernels.token_counts`).
        output_counts: int32 ``[requests, vocab]``, neighbouring columns: tokens generated so far.
        repetition: fp32 ``[requests]``; 1 is none.
        frequency: fp32 ``[requests]``; 0 is none.
        presence: fp32 ``[requests]``; 0 is none.
        request_of_row: int32 or int64 ``[rows]``, the request of each row; None: row ``i`` is request ``i``.
        input_ids: int32 or int64 ``[rows]``, the token that the model was fed at each row.
        draft_index: int32 ``[rows]``, given with ``input_ids``: how many of the row's request's drafts lie at or before
            the row; 0 at the row of its last accepted token, which ``output_counts`` holds already. Row ``r`` counts
            the drafts ``input_ids[r - draft_index[r] + 1 : r + 1]`` as generated.

    Raises:
        ValueError: the shapes do not belong together, or columns are not neighbours.
    """
    check_requests(
        "apply_penalties", logits, request_of_row, repetition=repetition, frequency=frequency, presence=presence
    )
    check_in_place("apply_penalties", logits)
    for name, counts in (("prompt_counts", prompt_counts), ("output_counts", output_counts)):
        if counts.shape != (repetition.shape[0], logits.shape[1]) or (counts.shape[1] > 1 and counts.stride(1) != 1):
            raise ValueError(
                f"apply_penalties: {name} {tuple(counts.shape)}, strides {counts.stride()}: [requests, vocab] = "
                f"[{repetition.shape[0]}, {logits.shape[1]}] with neighbouring columns is needed"
            )
    if (input_ids is None) != (draft_index is None):
        raise ValueError("apply_penalties: input_ids and draft_index are given together or not at all")
    for name, vector in (("input_ids", input_ids), ("draft_index", draft_index)):
        if vector is not None and vector.shape != logits.shape[:1]:
            raise ValueError(f"apply_penalties: {name} {tuple(vector.shape)} for {logits.shape[0]} rows")
    _operator(
        logits, prompt_counts, output_counts, repetition, frequency, presence, request_of_row, input_ids, draft_index
    )
