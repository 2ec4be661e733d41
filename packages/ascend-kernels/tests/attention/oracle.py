"""Attention of one query in float64, key by key: what the operators of this folder are compared with."""

from __future__ import annotations

import math

import torch


def attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scale: float,
    soft_cap: float = 0.0,
    sink: float | None = None,
) -> tuple[torch.Tensor, float]:
    """Output ``[V]`` and log-sum-exp of a query ``[K]`` over the keys ``[n, K]`` and values ``[n, V]`` that it sees."""
    scores = keys.double() @ query.double() * scale
    if soft_cap:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    lse = float((scores if sink is None else torch.cat([scores, torch.tensor([sink]).double()])).logsumexp(0))
    if lse == -math.inf:
        return torch.zeros(values.shape[1], dtype=torch.float64), lse
    return torch.exp(scores - lse) @ values.double(), lse


def pages_of(rows: torch.Tensor, page: int, numbers: list[int], blocks: int) -> torch.Tensor:
    """A cache ``[blocks, page, heads, size]`` that holds ``rows[n, heads, size]`` in the pages numbered, NaN (the least
    integer) elsewhere."""
    filler = float("nan") if rows.is_floating_point() else torch.iinfo(rows.dtype).min
    cache = torch.full((blocks, page, *rows.shape[1:]), filler, dtype=rows.dtype)
    for i, number in enumerate(numbers):
        part = rows[i * page : (i + 1) * page]
        cache[number, : len(part)] = part
    return cache
