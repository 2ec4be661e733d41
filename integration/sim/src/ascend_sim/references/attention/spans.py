# SPDX-License-Identifier: Apache-2.0
"""Where the tokens of each request lie: padded [B, S, ...], packed [T, ...] or in pages [blocks, block_size, ...].

The operators for sparse attention take lengths as device tensors; in a packed layout these are sums up to and including
each request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention import lengths
from ascend_sim.references.attention.paging import Pages, columns


@dataclass(frozen=True, slots=True)
class Spans:
    """Tokens of each request as rows of a tensor flattened by :func:`rows`.

    Args:
        starts: First row of each request; unused with ``pages``.
        lengths: Tokens of each request.
        pages: The blocks of each request.
    """

    starts: list[int]
    lengths: list[int]
    pages: Pages | None = None
    _first: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_first", torch.tensor(self.starts, dtype=torch.int64))

    def slots(self, members: list[int]) -> Tensor:
        """Rows of the tokens of some requests, [requests, longest]; past a length its last token's is repeated."""
        if self.pages is not None:
            return self.pages.of(members).slots()
        return self._first[members, None] + columns([self.lengths[i] for i in members])

    def locate(self, request: Tensor, position: Tensor) -> Tensor:
        """Rows of tokens ``position`` [N, K] of requests ``request`` [N]; positions must be within the lengths."""
        if self.pages is None:
            return self._first[request, None] + position
        size = self.pages.block_size
        block = self.pages.table[request].gather(1, position // size).long()
        if block.numel() and (int(block.min()) < 0 or int(block.max()) >= self.pages.blocks):
            given = f"{int(block.min())} to {int(block.max())}"
            raise limits.refuse(self.pages.op, "block_table", given, f"blocks 0 to {self.pages.blocks - 1}")
        return block.mul_(size).add_(position % size)

    def equal(self) -> Iterator[tuple[int, list[int]]]:
        """Numbers of the requests with tokens, grouped by how many they have."""
        groups: dict[int, list[int]] = {}
        for request, length in enumerate(self.lengths):
            if length:
                groups.setdefault(length, []).append(request)
        yield from groups.items()


def rows(tensor: Tensor, layout: str) -> Tensor:
    """``tensor`` with its tokens along one dimension."""
    return tensor if layout == "TND" else tensor.flatten(0, 1)


def query_spans(op: str, layout: str, query: Tensor, given: Tensor | None) -> Spans:
    """Spans of query tokens in layout BSND or TND; packed tokens past the last sum belong to no request."""
    name = "actual_seq_lengths_query"
    if layout == "TND":
        each = lengths.from_sums(op, name, _sums(op, name, given), None)
        if sum(each) > query.shape[0]:
            raise limits.refuse(op, f"{name}[-1]", sum(each), f"at most {query.shape[0]}, the number of packed tokens")
        return Spans([0, *accumulate(each[:-1])], each)
    if layout != "BSND":
        raise limits.refuse(op, "layout_query", repr(layout), "'BSND', 'TND'")
    return _padded(op, name, query, given)


def key_spans(
    op: str, layout: str, key: Tensor, given: Tensor | None, table: Tensor | None, batch: int, name: str
) -> Spans:
    """Spans of keys in layout BSND, TND or PA_BSND (with a block table); ``name`` is the lengths' argument."""
    if layout == "TND":
        each = lengths.from_sums(op, name, _sums(op, name, given), None)
        spans = Spans([0, *accumulate(each[:-1])], each)
    elif layout == "BSND":
        spans = _padded(op, name, key, given)
    elif layout != "PA_BSND":
        raise limits.refuse(op, "key layout", repr(layout), "'BSND', 'TND', 'PA_BSND'")
    elif table is None:
        raise limits.refuse(op, "block_table", None, "a table for keys in layout PA_BSND")
    else:
        each = _sums(op, name, given)
        spans = Spans([0] * len(each), each, Pages(op, table, each, key.shape[1], key.shape[0]))
    if len(spans.lengths) != batch:
        raise limits.refuse(op, f"len({name})", len(spans.lengths), f"{batch}, the number of requests")
    return spans


def _sums(op: str, name: str, given: Tensor | None) -> list[int]:
    if given is None:
        raise limits.refuse(op, name, None, "a tensor in layouts TND and PA_BSND")
    return [int(n) for n in given.tolist()]


def _padded(op: str, name: str, tensor: Tensor, given: Tensor | None) -> Spans:
    batch, longest = tensor.shape[:2]
    each = lengths.per_request(op, name, None if given is None else given.tolist(), batch, longest)
    return Spans([i * longest for i in range(batch)], each)


def causal_limits(queries: int, keys: Tensor, sparse_mode: int) -> Tensor:
    """How many of its keys each of ``queries`` tokens sees, [requests, queries]; keys [requests] are the lengths.

    Mode 0: all; mode 3: those up to the query's own position, counted from the lower right corner.
    """
    if sparse_mode == 0:
        return keys[:, None].expand(-1, queries)
    own = torch.arange(queries)[None] + (keys[:, None] - queries) + 1
    return own.clamp_(min=0)


def check_sparse_mode(op: str, sparse_mode: int, before: int, after: int) -> None:
    """Raise unless the mode is 0 or 3 and both token counts have their default."""
    if sparse_mode not in (0, 3):
        raise limits.refuse(op, "sparse_mode", sparse_mode, "0, 3")
    unbounded = (1 << 63) - 1
    if before != unbounded or after != unbounded:
        raise limits.refuse(op, "pre_tokens, next_tokens", f"{before}, {after}", f"{unbounded} (2^63 - 1) for both")
