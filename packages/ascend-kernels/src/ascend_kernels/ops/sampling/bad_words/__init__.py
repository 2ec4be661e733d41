"""Words that a request must not generate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.sampling.bad_words.calls import calls
from ascend_kernels.ops.sampling.bad_words.naive import bad_words_naive
from ascend_kernels.ops.sampling.rows.checks import check_in_place, check_requests


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.sampling.bad_words.triton import bad_words_triton

    return bad_words_triton


_operator = register(
    "apply_bad_words(Tensor(a!) logits, Tensor words, Tensor word_starts, Tensor first_word, Tensor output_ids, "
    "Tensor output_lengths, Tensor? request_of_row, Tensor? input_ids, Tensor? draft_index) -> ()",
    naive=bad_words_naive,
    triton=_triton,
    calls=calls,
)


def apply_bad_words(
    logits: torch.Tensor,
    words: torch.Tensor,
    word_starts: torch.Tensor,
    first_word: torch.Tensor,
    output_ids: torch.Tensor,
    output_lengths: torch.Tensor,
    request_of_row: torch.Tensor | None = None,
    input_ids: torch.Tensor | None = None,
    draft_index: torch.Tensor | None = None,
) -> None:
    """Exclude, in place, tokens that would complete a word that the row's request must not generate.

    Where the generated tokens end with all but the last token of a word, the logit of its last token becomes -inf; a
    word of one token is always excluded. The prompt is not looked at.

    Args:
        logits: fp16, bf16 or fp32 ``[rows, vocab]``, neighbouring columns; written.
        words: int32 ``[tokens]``, the tokens of all words behind one another.
        word_starts: int32 ``[words + 1]``, where each word begins, and the end of the last.
        first_word: int32 ``[requests + 1]``, the first word of each request, and the end of the last one's.
        output_ids: int32 or int64 ``[requests, longest]``, generated tokens; neighbouring columns.
        output_lengths: int32 ``[requests]``, how many of them are valid.
        request_of_row: int32 or int64 ``[rows]``, the request of each row; None: row ``i`` is request ``i``.
        input_ids: int32 or int64 ``[rows]``, the token that the model was fed at each row.
        draft_index: int32 ``[rows]``, given with ``input_ids``: how many of the row's request's drafts lie at or before
            the row; 0 at the row of its last accepted token, which is the last of its ``output_ids``. At row ``r`` the
            drafts ``input_ids[r - draft_index[r] + 1 : r + 1]`` count as generated.

    Raises:
        ValueError: the shapes do not belong together, or columns are not neighbours.
    """
    requests = first_word.shape[0] - 1
    check_requests("apply_bad_words", logits, request_of_row, output_lengths=output_lengths, first_word=first_word[1:])
    check_in_place("apply_bad_words", logits)
    if (
        output_ids.dim() != 2
        or output_ids.shape[0] != requests
        or (output_ids.shape[1] > 1 and output_ids.stride(1) != 1)
    ):
        raise ValueError(
            f"apply_bad_words: output_ids {tuple(output_ids.shape)}, strides {output_ids.stride()}: a row with "
            f"neighbouring columns for each of {requests} requests is needed"
        )
    if (input_ids is None) != (draft_index is None):
        raise ValueError("apply_bad_words: input_ids and draft_index are given together or not at all")
    for name, vector in (("input_ids", input_ids), ("draft_index", draft_index)):
        if vector is not None and vector.shape != logits.shape[:1]:
            raise ValueError(f"apply_bad_words: {name} {tuple(vector.shape)} for {logits.shape[0]} rows")
    _operator(
        logits, words, word_starts, first_word, output_ids, output_lengths, request_of_row, input_ids, draft_index
    )
