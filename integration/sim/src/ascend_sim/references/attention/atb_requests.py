# SPDX-License-Identifier: Apache-2.0
"""Requests in the forms of the Ascend Transformer Boost library: packed queries, paged or packed keys."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention.paging import Pages
from ascend_sim.references.attention.requests import Requests


def starts_of(each: Sequence[int]) -> list[int]:
    """The first token of each of several packed requests."""
    return [0, *accumulate(each[:-1])]


def cache_view(op: str, argument: str, cache: Tensor, heads: int) -> Tensor:
    """View a cache as [blocks, block_size, heads, size].

    It is that already, or fractal: [blocks, heads * size / c, block_size, c] with c elements of 32 bytes.
    """
    if cache.dim() == 4 and cache.shape[2] == heads:
        return cache
    width = 32 // cache.element_size()
    if cache.dim() == 4 and cache.shape[3] == width and (cache.shape[1] * width) % heads == 0:
        return cache.permute(0, 2, 1, 3).flatten(2).unflatten(2, (heads, -1))
    allowed = f"[blocks, block_size, {heads}, size] or [blocks, {heads} * size / {width}, block_size, {width}]"
    raise limits.refuse(op, f"{argument}.shape", list(cache.shape), allowed)


def paged(
    op: str,
    query: Tensor,
    caches: tuple[Tensor, Tensor],
    heads: tuple[int, int],
    scale: float,
    table: Tensor,
    query_lengths: list[int],
    key_lengths: list[int],
) -> Requests:
    """Requests over caches in either layout; ``heads`` are those of query and key."""
    names = ("key_cache", "value_cache")
    key, value = (cache_view(op, n, c, heads[1]) for n, c in zip(names, caches, strict=True))
    if sum(query_lengths) != query.shape[0]:
        raise limits.refuse(op, "sum of query lengths", sum(query_lengths), f"{query.shape[0]}, the packed tokens")
    pages = Pages(op, table, key_lengths, key.shape[1], key.shape[0])
    tokens = query.reshape(query.shape[0], heads[0], -1)
    return Requests(tokens, starts_of(query_lengths), query_lengths, key, value, key_lengths, scale, pages=pages)


def packed(
    op: str,
    tensors: tuple[Tensor, Tensor, Tensor],
    query_lengths: list[int],
    key_lengths: list[int],
    scale: float,
    heads: tuple[int, int],
) -> Requests:
    """Requests over packed query, key and value [tokens, heads, size] or [tokens, heads * size]."""
    query, key, value = (
        t.reshape(t.shape[0], n, -1) for t, n in zip(tensors, (heads[0], heads[1], heads[1]), strict=True)
    )
    for name, each, tokens in (("query", query_lengths, query), ("key", key_lengths, key)):
        if sum(each) != tokens.shape[0]:
            raise limits.refuse(op, f"sum of {name} lengths", sum(each), f"{tokens.shape[0]}, the packed tokens")
    starts, key_starts = starts_of(query_lengths), starts_of(key_lengths)
    return Requests(query, starts, query_lengths, key, value, key_lengths, scale, key_starts=key_starts)


def one(work: Requests, request: int) -> Requests:
    """One of several requests, with its own query tokens."""
    start, length = work.query_starts[request], work.query_lengths[request]
    pages = None if work.pages is None else work.pages.of([request])
    return Requests(
        work.query[start : start + length],
        [0],
        [length],
        work.key,
        work.value,
        [work.key_lengths[request]],
        work.scale,
        key_starts=[] if work.pages is not None else [work.key_starts[request]],
        pages=pages,
        band=work.band,
    )
