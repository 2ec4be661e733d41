"""The definition in torch."""

from __future__ import annotations

import torch


def topk_routing_naive(
    logits: torch.Tensor,
    k: int,
    sigmoid: bool,
    bias: torch.Tensor | None,
    groups: int,
    top_groups: int,
    renormalise: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.topk_routing`."""
    values = logits.float()
    scores = torch.sigmoid(values) if sigmoid else torch.softmax(values, dim=-1)
    choice = scores if bias is None else scores + bias.float()
    if top_groups < groups:
        by_group = choice.unflatten(-1, (groups, -1))
        best = by_group.topk(min(2, by_group.shape[-1]), dim=-1).values
        of_group = best[..., 0] if bias is None else best.sum(-1)
        chosen = _first_largest(of_group, top_groups)
        allowed = torch.zeros_like(of_group, dtype=torch.bool).scatter_(-1, chosen, True)
        choice = by_group.masked_fill(~allowed[..., None], float("-inf")).flatten(-2)
    ids = _first_largest(choice, k)
    weights = scores.gather(-1, ids)
    if renormalise:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return weights * scale, ids.int()


def _first_largest(values: torch.Tensor, count: int) -> torch.Tensor:
    """Indices of the ``count`` largest in falling order; of equal ones the first comes first."""
    return values.sort(dim=-1, descending=True, stable=True).indices[..., :count]
