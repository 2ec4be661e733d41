# SPDX-License-Identifier: Apache-2.0
"""A batch of attention requests of different lengths over one set of query tokens and one set of keys and values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ascend_sim.references.attention.core import attend
from ascend_sim.references.attention.masks import Band
from ascend_sim.references.attention.paging import Pages, columns, take

Dequantise = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(keys, values, request numbers) as stored, to floating point."""


@dataclass(slots=True)
class Requests:
    """What to compute.

    Args:
        query: All query tokens, [tokens, H, D].
        query_starts: First token of each request.
        query_lengths: Tokens of each request; tokens of no request give zeros.
        key: Keys [key tokens, Hk, D], or a cache [blocks, block_size, Hk, D] with ``pages``.
        value: The same with Dv.
        key_lengths: Keys of each request.
        key_starts: First key of each request, if not paged.
        pages: Where each request's keys are, if paged.
        scale: Factor on the scores.
        band: Which keys are seen, by distance.
        mask: Which keys are seen, bool [B or 1, at least Sq, at least Sk].
        bias: [B or 1, H, at least Sq, at least Sk], added to scaled scores.
        sink: One more logit per head, [H].
        dequantise: Turns stored keys and values into floating point.
    """

    query: Tensor
    query_starts: list[int]
    query_lengths: list[int]
    key: Tensor
    value: Tensor
    key_lengths: list[int]
    scale: float
    key_starts: list[int] = field(default_factory=list)
    pages: Pages | None = None
    band: Band = field(default_factory=Band)
    mask: Tensor | None = None
    bias: Tensor | None = None
    sink: Tensor | None = None
    dequantise: Dequantise | None = None

    def attend(self) -> tuple[Tensor, Tensor]:
        """The result [tokens, H, Dv] and log-sum-exp [tokens, H] (+inf where no key is seen)."""
        tokens, heads = self.query.shape[:2]
        single = [i for i, n in enumerate(self.query_lengths) if n == 1]
        if len(single) == len(self.query_starts) == tokens and self.query_starts == single:
            out, lse = self._single(single, self.query[:, None])
            return out[:, 0], lse[:, :, 0]
        out = self.query.new_zeros(tokens, heads, self.value.shape[-1])
        lse = torch.full((tokens, heads), torch.inf)
        if single:
            rows = torch.tensor([self.query_starts[i] for i in single])
            part, sums = self._single(single, self.query[rows, None])
            out[rows], lse[rows] = part[:, 0], sums[:, :, 0]
        for (length, keys), members in self._groups().items():
            rows = torch.tensor([self.query_starts[i] for i in members])[:, None] + torch.arange(length)
            part, sums = self._equal(members, self.query[rows], length, keys)
            out[rows], lse[rows] = part, sums.transpose(1, 2)
        return out, lse

    def _groups(self) -> dict[tuple[int, int], list[int]]:
        """Requests of more than one token by equal lengths, which are computed together."""
        groups: dict[tuple[int, int], list[int]] = {}
        for request, pair in enumerate(zip(self.query_lengths, self.key_lengths, strict=True)):
            if pair[0] > 1:
                groups.setdefault(pair, []).append(request)
        return groups

    def _single(self, members: list[int], query: Tensor) -> tuple[Tensor, Tensor]:
        """Requests of one token and any number of keys, padded to the longest."""
        lengths = [self.key_lengths[i] for i in members]
        if self.pages is not None and self._decodes_in_place():
            pages, sink = self.pages.of(members), None if self.sink is None else self.sink.float()
            out, lse = torch.ops.ascend_sim.paged_decode(
                pages.op, query[:, 0], self.key, self.value, pages.table, lengths, self.scale, self.band.before, sink
            )
            return out[:, None], lse[:, :, None]
        longest = max(lengths)
        allowed = None
        if min(lengths) < longest or self.band != Band():
            column, length = torch.arange(longest)[None], torch.tensor(lengths)[:, None]
            distance = column - (length - 1 if self.band.lower_right else 0)
            allowed = column < length
            if self.band != Band():
                allowed = allowed & (distance >= -self.band.before) & (distance <= self.band.after)
            allowed = allowed[:, None]
        return self._compute(members, query, 1, longest, allowed)

    def _decodes_in_place(self) -> bool:
        """Whether the compiled kernel covers single tokens: nothing but a band that ends at the last key."""
        plain = self.mask is None and self.bias is None and self.dequantise is None
        return plain and (self.band == Band() or (self.band.lower_right and self.band.after >= 0))

    def _equal(self, members: list[int], query: Tensor, length: int, keys: int) -> tuple[Tensor, Tensor]:
        return self._compute(members, query, length, keys, self.band.allowed(length, keys))

    def _compute(
        self, members: list[int], query: Tensor, length: int, keys: int, allowed: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if self.mask is not None:
            mask = (self.mask if self.mask.shape[0] == 1 else self.mask[members])[:, :length, :keys]
            allowed = mask if allowed is None else mask & allowed
        bias = self.bias
        if bias is not None:
            bias = (bias if bias.shape[0] == 1 else bias[members])[:, :, :length, :keys]
        key, value = self._keys(members, keys)
        if self.dequantise is not None:
            key, value = self.dequantise(key, value, torch.tensor(members))
        return attend(query, key, value, self.scale, allowed=allowed, bias=bias, sink=self.sink)

    def _keys(self, members: list[int], keys: int) -> tuple[Tensor, Tensor]:
        """Keys and values [members, keys, Hk, D] of some requests; past a request's length they are any tokens."""
        lengths = [self.key_lengths[i] for i in members]
        if self.pages is None:
            starts = [self.key_starts[i] for i in members]
            if len(members) == 1:
                rows = slice(starts[0], starts[0] + keys)
                return self.key[rows][None], self.value[rows][None]
            index = torch.tensor(starts)[:, None] + columns(lengths)
            if not self.key.shape[0]:
                index = index.new_empty(len(members), 0)
            found = self.key[index], self.value[index]
        else:
            slots = self.pages.of(members).slots()
            found = take(self.key, slots), take(self.value, slots)
        if not min(lengths):
            without = torch.tensor(lengths) == 0
            for tensor in found:
                tensor[without] = 0
        return found
