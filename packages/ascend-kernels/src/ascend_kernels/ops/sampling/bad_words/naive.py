"""The definition in torch."""

from __future__ import annotations

import torch


def bad_words_naive(
    logits: torch.Tensor,
    words: torch.Tensor,
    word_starts: torch.Tensor,
    first_word: torch.Tensor,
    output_ids: torch.Tensor,
    output_lengths: torch.Tensor,
    request_of_row: torch.Tensor | None,
    input_ids: torch.Tensor | None,
    draft_index: torch.Tensor | None,
) -> None:
    """See :func:`ascend_kernels.apply_bad_words`."""
    starts, first = word_starts.tolist(), first_word.tolist()
    for row in range(logits.shape[0]):
        request = row if request_of_row is None else int(request_of_row[row])
        sequence = output_ids[request, : int(output_lengths[request])].tolist()
        if input_ids is not None and draft_index is not None:
            sequence += input_ids[row - int(draft_index[row]) + 1 : row + 1].tolist()
        for word in range(first[request], first[request + 1]):
            tokens = words[starts[word] : starts[word + 1]].tolist()
            if not tokens or not 0 <= tokens[-1] < logits.shape[1]:
                continue
            before = len(tokens) - 1
            if before <= len(sequence) and sequence[len(sequence) - before :] == tokens[:-1]:
                logits[row, tokens[-1]] = float("-inf")
