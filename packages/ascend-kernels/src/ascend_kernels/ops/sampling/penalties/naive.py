"""The definition in torch."""

from __future__ import annotations

import torch

from ascend_kernels.ops.sampling.scale_logits.naive import of_rows


def penalties_naive(
    logits: torch.Tensor,
    prompt_counts: torch.Tensor,
    output_counts: torch.Tensor,
    repetition: torch.Tensor,
    frequency: torch.Tensor,
    presence: torch.Tensor,
    request_of_row: torch.Tensor | None,
    input_ids: torch.Tensor | None,
    draft_index: torch.Tensor | None,
) -> None:
    """See :func:`ascend_kernels.apply_penalties`."""
    rows, vocab = logits.shape

    def per_row(values: torch.Tensor) -> torch.Tensor:
        return of_rows(values, request_of_row, rows)

    counts = per_row(output_counts).clone()
    if input_ids is not None and draft_index is not None:
        for row, drafts in enumerate(draft_index.tolist()):
            for token in input_ids[row - drafts + 1 : row + 1].tolist():
                if 0 <= token < vocab:
                    counts[row, token] += 1
    values = logits.float()
    factor = per_row(repetition)[:, None]
    repeated = torch.where(values > 0, values / factor, values * factor)
    values = torch.where((counts > 0) | (per_row(prompt_counts) > 0), repeated, values)
    values = values - per_row(frequency)[:, None] * counts - per_row(presence)[:, None] * (counts > 0)
    logits.copy_(values)
