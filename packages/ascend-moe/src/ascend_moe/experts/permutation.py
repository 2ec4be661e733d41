"""From tokens to rows sorted by expert, and back."""

from __future__ import annotations

from typing import NamedTuple

import torch


class Sorted(NamedTuple):
    """Every choice of a local expert as a row.

    Attributes:
        rows: [tokens * top_k, hidden], sorted by expert; undefined beyond the sum of ``counts``.
        counts: [local experts] int64, rows of each expert.
        row_of: [tokens * top_k] int32, the row of every choice; -1 where the expert is not local.
    """

    rows: torch.Tensor
    counts: torch.Tensor
    row_of: torch.Tensor


def sort_by_expert(tokens: torch.Tensor, experts: torch.Tensor, local: int) -> Sorted:
    """Copy every token to the rows of its local experts.

    Args:
        tokens: [tokens, hidden].
        experts: [tokens, top_k] int32 from 0 to ``local``, where ``local`` stands for experts of other ranks.
        local: the number of local experts.
    """
    rows, row_of, counts, _ = torch.ops.npu.npu_moe_init_routing_v2(
        tokens,
        experts,
        active_num=experts.numel(),
        expert_num=local + 1,
        expert_tokens_num_type=1,
        expert_tokens_num_flag=True,
        active_expert_range=[0, local],
    )
    return Sorted(rows, counts, row_of)


def add_up(rows: torch.Tensor, where: Sorted, weights: torch.Tensor) -> torch.Tensor:
    """Each token's sum of its local experts' rows, weighted: [tokens, hidden].

    Args:
        rows: the experts' results, ordered as ``where.rows``.
        where: what :func:`sort_by_expert` gave.
        weights: [tokens, top_k].
    """
    elsewhere = where.row_of.view_as(weights) < 0
    # Choices without a row read row 0 with weight zero; it is undefined, perhaps NaN, where no token came at all.
    first = rows[:1].masked_fill(where.counts.sum() == 0, 0)
    rows[:1] = first
    return torch.ops.npu.npu_moe_token_unpermute(
        rows, where.row_of.clamp_min(0), probs=weights.masked_fill(elsewhere, 0).to(rows.dtype)
    )
