# SPDX-License-Identifier: Apache-2.0
"""Attention of each query to keys chosen for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ascend_sim.references.attention.spans import Spans, causal_limits

_MAX_GATHERED = 1 << 24
"""Elements of chosen keys held at once; more query tokens are computed in slices."""

Gather = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
"""Rows of key tokens [R, K] to keys [R, K, D], rope parts [R, K, Dr] and values [R, K, Dv] in float32."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What one call computes, tokens along one dimension.

    Args:
        query: [T, N, D].
        query_rope: [T, N, Dr]; scores are ``scale * (query . key + query_rope . key_rope)``.
        gather: Reads chosen tokens.
        indices: Chosen blocks of ``block`` neighbouring positions, [T, K]; the first negative one ends a row.
        scale: Factor on the scores.
        sink: One more logit per head, [N].
    """

    query: Tensor
    query_rope: Tensor
    gather: Gather
    indices: Tensor
    block: int
    scale: float
    sink: Tensor | None = None

    def attend(self, queries: Spans, keys: Spans, sparse_mode: int) -> tuple[Tensor, Tensor, Tensor]:
        """The result [T, N, D] in query's dtype, and the largest score and sum of exponentials [T, N] in float32.

        Tokens of no request, and those that see nothing, give zeros.
        """
        tokens, heads = self.query.shape[:2]
        out = self.query.new_zeros(self.query.shape)
        top, total = torch.zeros(tokens, heads), torch.zeros(tokens, heads)
        if self.sink is not None:
            for start, length in zip(queries.starts, queries.lengths, strict=True):
                top[start : start + length], total[start : start + length] = self.sink, 1.0
        step = max(1, _MAX_GATHERED // max(1, self.indices.shape[1] * self.block * self.query.shape[2]))
        for length, members in queries.equal():
            lines = queries.slots(members).flatten()
            seen = causal_limits(length, torch.tensor([keys.lengths[i] for i in members]), sparse_mode).flatten()
            request = torch.tensor(members).repeat_interleave(length)
            for some in torch.arange(len(lines)).split(step):
                self._rows(lines[some], seen[some], request[some], keys, (out, top, total))
        return out, top, total

    def _rows(
        self, lines: Tensor, seen: Tensor, request: Tensor, keys: Spans, into: tuple[Tensor, Tensor, Tensor]
    ) -> None:
        chosen = self.indices[lines].long()
        valid = chosen.cummin(-1).values >= 0
        if self.block > 1:
            chosen = (chosen[..., None] * self.block + torch.arange(self.block)).flatten(1)
            valid = valid.repeat_interleave(self.block, -1)
        valid &= chosen < seen[:, None]
        some = valid.any(-1)
        if not bool(some.all()):
            lines, chosen, valid, request = lines[some], chosen[some], valid[some], request[some]
            if not lines.numel():
                return
        # What is not chosen is masked out, but multiplied by a weight of zero first: it must be a token, not the NaN
        # that unused memory may hold.
        known = chosen.gather(1, valid.long().argmax(-1, keepdim=True))
        slots = keys.locate(request, torch.where(valid, chosen, known))
        key, key_rope, value = self.gather(slots)
        scores = torch.matmul(self.query[lines].float(), key.transpose(1, 2))
        scores += torch.matmul(self.query_rope[lines].float(), key_rope.transpose(1, 2))
        scores.mul_(self.scale).masked_fill_(~valid[:, None], -torch.inf)
        top = scores.amax(-1, keepdim=True)
        if self.sink is not None:
            top = torch.maximum(top, self.sink[:, None])
        weights = scores.sub_(top).exp_()
        total = weights.sum(-1, keepdim=True)
        if self.sink is not None:
            total = total + (self.sink[:, None] - top).exp()
        into[0][lines] = torch.matmul(weights, value).div_(total).to(self.query.dtype)
        into[1][lines], into[2][lines] = top.squeeze(-1), total.squeeze(-1)
