# SPDX-License-Identifier: Apache-2.0
"""Softmax attention with grouped heads: ``softmax(scale * q k^T + bias, masked) v``."""

from __future__ import annotations

import torch
from torch import Tensor

_MAX_SCORES = 1 << 24
"""Scores held at once (float32, 64 MiB); longer queries are computed in slices."""


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    *,
    allowed: Tensor | None = None,
    bias: Tensor | None = None,
    sink: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention of a batch of equally shaped requests, in float32.

    Heads of a group share a key head: query head h uses key head ``h // (H / Hk)``. The group is folded into the query
    rows, so keys and values are never repeated.

    Args:
        query: [B, Sq, H, D].
        key: [B, Sk, Hk, D], Hk divides H.
        value: [B, Sk, Hk, Dv].
        scale: Factor on ``q k^T``.
        allowed: Which keys a query sees, bool, broadcastable to [B, Sq, Sk]; all if None.
        bias: Added after scaling, broadcastable to [B, H, Sq, Sk].
        sink: [H]; one more logit per head that takes part in the sum and has no value.

    Returns:
        The result [B, Sq, H, Dv] in query's dtype, and ``log(sum(exp))`` of the scores (without the sink) [B, H, Sq] in
        float32. A row that sees no key gives zeros and +inf.
    """
    batch, rows, heads, size = query.shape
    keys, groups = key.shape[1], key.shape[2]
    fold = heads // groups
    folded = query.float().reshape(batch, rows, groups, fold, size).permute(0, 2, 3, 1, 4).mul(scale)
    key_t = key.float().permute(0, 2, 3, 1)
    values = value.float().transpose(1, 2)
    out = query.new_empty(batch, rows, heads, value.shape[-1])
    lse = torch.empty(batch, heads, rows, dtype=torch.float32)
    step = max(1, _MAX_SCORES // max(1, batch * heads * keys))
    for start in range(0, rows, step):
        stop = min(rows, start + step)
        part = _Rows(slice(start, stop), allowed, bias, sink)
        mixed, sums = part.attend(folded[:, :, :, start:stop], key_t, values)
        out[:, start:stop] = mixed.permute(0, 3, 1, 2, 4).reshape(batch, stop - start, heads, -1)
        lse[:, :, start:stop] = sums.reshape(batch, heads, -1)
    return out, lse


class _Rows:
    """A slice of query rows with its part of mask and bias."""

    def __init__(self, rows: slice, allowed: Tensor | None, bias: Tensor | None, sink: Tensor | None) -> None:
        self.allowed = allowed if allowed is None or allowed.shape[-2] == 1 else allowed[..., rows, :]
        self.bias = bias if bias is None or bias.shape[-2] == 1 else bias[..., rows, :]
        self.sink = sink

    def attend(self, query: Tensor, key_t: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """[B, Hk, G, R, D], [B, Hk, D, Sk] and [B, Hk, Sk, Dv] to [B, Hk, G, R, Dv] and [B, Hk, G, R]."""
        batch, groups, fold, rows, size = query.shape
        scores = torch.matmul(query.reshape(batch, groups, fold * rows, size), key_t)
        scores = scores.view(batch, groups, fold, rows, -1)
        if self.bias is not None:
            bias = self.bias.float()
            scores += bias.view(*bias.shape[:-3], -1, fold if bias.shape[-3] > 1 else 1, *bias.shape[-2:])
        if self.allowed is not None:
            allowed = self.allowed if self.allowed.dim() == 3 else self.allowed.unsqueeze(0)
            scores.masked_fill_(~allowed[:, None, None], -torch.inf)
        if not scores.shape[-1]:
            return scores.new_zeros(*scores.shape[:-1], value.shape[-1]), scores.new_full(scores.shape[:-1], torch.inf)
        top = scores.amax(-1, keepdim=True)
        sink = None
        if self.sink is not None:
            sink = self.sink.float().view(1, groups, fold, 1, 1)
            top = torch.maximum(top, sink)
        top = top.masked_fill(top == -torch.inf, 0.0)
        weights = scores.sub_(top).exp_()
        total = weights.sum(-1, keepdim=True)
        empty = total == 0
        divisor = total if sink is None else total + (sink - top).exp()
        mixed = torch.matmul(weights.view(batch, groups, fold * rows, -1), value).view(batch, groups, fold, rows, -1)
        mixed = mixed.div_(divisor.masked_fill(empty, 1.0))
        lse = (top + total.log()).masked_fill_(empty, torch.inf)
        return mixed, lse.squeeze(-1)
