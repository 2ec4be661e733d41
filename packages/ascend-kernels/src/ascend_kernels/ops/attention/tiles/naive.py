"""The definition of attention in torch, over keys that are laid out or in pages."""

from __future__ import annotations

import torch


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    visible: torch.Tensor,
    sinks: torch.Tensor | None,
    scale: float,
    soft_cap: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """fp32 output and log-sum-exp; ``visible`` is ``[tokens, kv_heads or 1, keys]``."""
    tokens, heads, _ = query.shape
    kv_heads = key.shape[1]
    grouped = query.float().unflatten(1, (kv_heads, heads // kv_heads))
    scores = torch.einsum("tngk,snk->tngs", grouped, key.float()) * scale
    if soft_cap > 0:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    scores = scores.masked_fill(~visible[:, :, None], float("-inf"))
    if sinks is not None:
        sink = sinks.float().view(1, kv_heads, -1, 1).expand(tokens, -1, -1, -1)
        scores = torch.cat([scores, sink], -1)
        value = torch.cat([value.float(), value.new_zeros(1, *value.shape[1:]).float()])
    lse = scores.logsumexp(-1)
    weights = torch.exp(scores - torch.where(lse == float("-inf"), 0.0, lse)[..., None])
    output = torch.einsum("tngs,snv->tngv", weights, value.float())
    return output.flatten(1, 2), lse.flatten(1, 2)


def from_pages(cache: torch.Tensor, pages: torch.Tensor, length: int, scale: torch.Tensor | None) -> torch.Tensor:
    """The first ``length`` rows of a sequence out of a cache ``[blocks, page, kv_heads, size]``, times the scales."""
    used = -(-length // cache.shape[1])
    rows = cache[pages[:used].long()].flatten(0, 1)[:length]
    return rows if scale is None else rows.float() * scale
