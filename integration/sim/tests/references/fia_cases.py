# SPDX-License-Identifier: Apache-2.0
"""Requests for npu_fused_infer_attention_score in every layout, with what the page's formula gives for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .oracle import as_float64, attention, sparse_seen

COMPRESSED = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
"""The compressed causal mask: ones above the diagonal."""


@dataclass
class Batch:
    """Requests of given lengths with random queries, keys and values.

    Args:
        queries: Query tokens of each request.
        keys: Keys of each request.
        heads: Query heads and key heads.
        size: Head size of query and key, and of value.
    """

    queries: list[int]
    keys: list[int]
    heads: tuple[int, int] = (4, 2)
    size: tuple[int, int] = (64, 64)
    dtype: torch.dtype = torch.float16
    query: list[Tensor] = field(init=False)
    key: list[Tensor] = field(init=False)
    value: list[Tensor] = field(init=False)

    def __post_init__(self) -> None:
        def rows(lengths: list[int], heads: int, size: int) -> list[Tensor]:
            return [torch.randn(n, heads, size).to(self.dtype) for n in lengths]

        self.query = rows(self.queries, self.heads[0], self.size[0])
        self.key = rows(self.keys, self.heads[1], self.size[0])
        self.value = rows(self.keys, self.heads[1], self.size[1])

    @property
    def scale(self) -> float:
        return float(self.size[0] ** -0.5)

    def expected(
        self,
        mode: int = 0,
        before: int = 10**9,
        after: int = 10**9,
        masks: list[np.ndarray] | None = None,
        **extra: Any,
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Result [S, H, Dv] and log-sum-exp [S, H] of each request; ``masks`` are 1 where a key is hidden."""
        results = []
        for i, (q, k, v) in enumerate(zip(self.query, self.key, self.value, strict=True)):
            seen = sparse_seen(mode, q.shape[0], k.shape[0], before, after)
            if masks is not None:
                seen = seen & (masks[i] == 0)
            options = {name: value[i] if isinstance(value, list) else value for name, value in extra.items()}
            results.append(attention(as_float64(q), as_float64(k), as_float64(v), self.scale, seen, **options))
        return results

    def common(self) -> dict[str, Any]:
        return {"num_heads": self.heads[0], "num_key_value_heads": self.heads[1], "scale": self.scale}

    def packed(self) -> tuple[dict[str, Tensor], dict[str, list[int]]]:
        """TND tensors, and both lists as sums."""
        tensors = {"query": torch.cat(self.query), "key": torch.cat(self.key), "value": torch.cat(self.value)}
        sums = [np.cumsum(n).tolist() for n in (self.queries, self.keys)]
        return tensors, {"actual_seq_lengths": sums[0], "actual_seq_lengths_kv": sums[1]}

    def padded(
        self, layout: str, query_pad: int = 0, key_pad: int = 0
    ) -> tuple[dict[str, Tensor], dict[str, list[int]]]:
        """Tensors in ``layout`` (BSH, BSND, BNSD) with NaN past each length, and the lengths."""
        out = {}
        for name, rows, pad in (
            ("query", self.query, query_pad),
            ("key", self.key, key_pad),
            ("value", self.value, key_pad),
        ):
            longest = max(r.shape[0] for r in rows) + pad
            whole = torch.full((len(rows), longest, *rows[0].shape[1:]), torch.nan, dtype=self.dtype)
            for i, row in enumerate(rows):
                whole[i, : row.shape[0]] = row
            whole = whole.flatten(2) if layout == "BSH" else whole.transpose(1, 2) if layout == "BNSD" else whole
            out[name] = whole.contiguous()
        return out, {"actual_seq_lengths": self.queries, "actual_seq_lengths_kv": self.keys}

    def pages(self, block_size: int, form: str = "BnBsH", spare: int = 2) -> tuple[dict[str, Tensor], Tensor]:
        """Caches of shuffled blocks, NaN where no token is, and the table; unused table entries name no block."""
        width = max(1, -(-max(self.keys) // block_size)) + 1
        counts = [-(-n // block_size) for n in self.keys]
        blocks = torch.randperm(sum(counts) + spare)
        table = torch.full((len(self.keys), width), -7, dtype=torch.int32)
        caches, used = {}, 0
        for name in ("key", "value"):
            rows = getattr(self, name)
            cache = torch.full((len(blocks), block_size, *rows[0].shape[1:]), torch.nan, dtype=self.dtype)
            used = 0
            for i, row in enumerate(rows):
                for b in range(counts[i]):
                    part = row[b * block_size : (b + 1) * block_size]
                    cache[blocks[used], : part.shape[0]] = part
                    table[i, b] = blocks[used]
                    used += 1
            caches[name] = self._arrange(cache, form)
        return caches, table

    @staticmethod
    def _arrange(cache: Tensor, form: str) -> Tensor:
        if form == "BnBsH":
            return cache.flatten(2)
        if form == "BnNBsD":
            return cache.transpose(1, 2).contiguous()
        return cache.unflatten(3, (-1, 16)).permute(0, 2, 3, 1, 4).contiguous()


def stack(results: list[np.ndarray], rows: int | None = None) -> np.ndarray:
    """Results of requests one after the other, or, with ``rows``, padded with zeros to [B, rows, ...]."""
    if rows is None:
        return np.concatenate(results)
    out = np.zeros((len(results), rows, *results[0].shape[1:]))
    for i, result in enumerate(results):
        out[i, : result.shape[0]] = result
    return out
