"""The definition in torch, with a sort."""

from __future__ import annotations

import torch

from ascend_kernels.ops.sampling.scale_logits.naive import of_rows


def top_k_top_p_naive(
    logits: torch.Tensor,
    top_k: torch.Tensor | None,
    top_p: torch.Tensor | None,
    request_of_row: torch.Tensor | None,
    exhaustive: bool,
) -> None:
    """See :func:`ascend_kernels.top_k_top_p`."""
    rows, vocab = logits.shape
    values, _ = logits.float().sort(descending=True)
    threshold = torch.full((rows, 1), float("-inf"), device=logits.device)
    if top_k is not None and rows:
        k = of_rows(top_k, request_of_row, rows).long()
        limited = (k >= 1) & (k < vocab)
        at = values.gather(1, torch.where(limited, k, vocab)[:, None] - 1)
        threshold = torch.where(limited[:, None], at, threshold)
    if top_p is not None and rows:
        p = of_rows(top_p, request_of_row, rows)[:, None]
        mass = values.masked_fill(values < threshold, float("-inf")).softmax(-1)
        before = mass.cumsum(-1) - mass  # the mass of the tokens in front; tied ones come in with the first of them
        least = torch.where((before < p) & (values >= threshold), values, float("inf")).amin(1, keepdim=True)
        least = torch.minimum(least, values[:, :1])
        threshold = torch.where(p < 1, torch.maximum(least, threshold), threshold)
    logits.masked_fill_(logits.float() < threshold, float("-inf"))
