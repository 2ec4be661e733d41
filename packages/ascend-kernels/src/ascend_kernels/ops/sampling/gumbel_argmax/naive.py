"""The definition in torch."""

from __future__ import annotations

import torch

from ascend_kernels.ops.sampling.noise.naive import exponential
from ascend_kernels.ops.sampling.scale_logits.naive import of_rows, scaled


def gumbel_argmax_naive(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    positions: torch.Tensor,
    min_p: torch.Tensor | None,
    request_of_row: torch.Tensor | None,
) -> torch.Tensor:
    """See :func:`ascend_kernels.gumbel_argmax`."""
    rows, vocab = logits.shape
    warmth = of_rows(temperature, request_of_row, rows)
    bound = None if min_p is None else of_rows(min_p, request_of_row, rows)
    seed = of_rows(seeds, request_of_row, rows)
    noise = exponential(seed[:, None], positions[:, None], torch.arange(vocab, device=logits.device))
    scores = torch.where(warmth[:, None] == 0, logits.float(), scaled(logits, warmth, bound) - noise.log())
    return scores.argmax(-1)
