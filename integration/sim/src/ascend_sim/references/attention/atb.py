# SPDX-License-Identifier: Apache-2.0
"""Attention of the Ascend Transformer Boost library: packed queries, paged or packed keys, in-place result."""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention.paging import Pages
from ascend_sim.references.attention.requests import Requests
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test


def _cache(op: str, argument: str, cache: Tensor, heads: int) -> Tensor:
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


def _starts(each: list[int]) -> list[int]:
    return [0, *accumulate(each[:-1])]


def _paged_requests(
    op: str,
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    heads: tuple[int, int],
    scale: float,
    block_table: Tensor,
    query_lengths: list[int],
    key_lengths: list[int],
) -> Requests:
    key, value = (_cache(op, n, c, heads[1]) for n, c in (("key_cache", key_cache), ("value_cache", value_cache)))
    pages = Pages(op, block_table, key_lengths, key.shape[1], key.shape[0])
    tokens = query.reshape(query.shape[0], heads[0], -1)
    return Requests(tokens, _starts(query_lengths), query_lengths, key, value, key_lengths, scale, pages=pages)


@reference("atb::_npu_paged_attention", source=op_plugin_test("test_atb_paged_attention"), grade=Grade.GOLDEN)
def _npu_paged_attention(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    num_kv_heads: int,
    num_heads: int,
    scale_value: float,
    block_table: Tensor,
    context_lens: Tensor,
    out: Tensor,
    *,
    workspace: Tensor | None = None,
) -> None:
    """Decode one token a request: query [B, H, D] over ``context_lens`` [B] cached tokens, into ``out`` [B, H, Dv]."""
    op, each = "_npu_paged_attention", context_lens.tolist()
    if len(each) != query.shape[0]:
        raise limits.refuse(op, "len(context_lens)", len(each), f"{query.shape[0]}, one per query token")
    heads = (num_heads, num_kv_heads)
    work = _paged_requests(
        op, query, key_cache, value_cache, heads, scale_value, block_table, [1] * len(each), each
    )  # fmt: skip
    out.copy_(work.attend()[0].reshape(out.shape))


@reference(
    "atb::_npu_paged_attention_get_workspace",
    source=op_plugin_test("test_atb_paged_attention"),
    grade=Grade.GUESSED,
    note="the simulation needs no workspace; the size is arbitrary",
)
def _npu_paged_attention_get_workspace(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    num_kv_heads: int,
    num_heads: int,
    scale_value: float,
    block_table: Tensor,
    context_lens: Tensor,
    out: Tensor,
) -> Tensor:
    """A one-dimensional byte tensor."""
    return torch.empty(16, dtype=torch.uint8)


@reference(
    "atb::_npu_paged_attention_splitfuse",
    source=op_plugin_test("test_atb_paged_attention_splitfuse"),
    grade=Grade.GOLDEN,
    note="only the two-dimensional mask of the vendor's test, one row per query token, is simulated",
)
def _npu_paged_attention_splitfuse(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    block_table: Tensor,
    context_lens: Tensor,
    mask: Tensor,
    seq_len: Tensor,
    num_kv_heads: int,
    num_heads: int,
    scale_value: float,
    out: Tensor,
) -> None:
    """Prefill and decode together: ``seq_len`` [B] new tokens per request over ``context_lens`` [B] cached ones.

    ``mask`` [T, max(context_lens)] is added to the scores, 0 or a large negative number.
    """
    op, each, context = "_npu_paged_attention_splitfuse", seq_len.tolist(), context_lens.tolist()
    if mask.dim() != 2 or mask.shape[0] != query.shape[0]:
        raise limits.not_simulated(op, "mask.shape", list(mask.shape))
    heads = (num_heads, num_kv_heads)
    for request, start in enumerate(_starts(each)):
        rows = slice(start, start + each[request])
        work = _paged_requests(
            op, query[rows], key_cache, value_cache, heads, scale_value,
            block_table[request : request + 1], each[request : request + 1], context[request : request + 1],
        )  # fmt: skip
        work.bias = mask[None, None, rows, : context[request]]
        out[rows] = work.attend()[0].reshape(out[rows].shape)


def _packed(
    op: str, query: Tensor, key: Tensor, value: Tensor, each: list[int], scale: float, heads: tuple[int, int]
) -> Requests:
    if sum(each) != query.shape[0]:
        raise limits.refuse(op, "sum(seq_len)", sum(each), f"{query.shape[0]}, the number of packed tokens")
    starts = _starts(each)
    tokens = [t.reshape(t.shape[0], n, -1) for t, n in ((query, heads[0]), (key, heads[1]), (value, heads[1]))]
    return Requests(tokens[0], starts, each, tokens[1], tokens[2], each, scale, key_starts=starts)


@reference("atb::_npu_flash_attention", source=op_plugin_test("test_atb_flash_attention"), grade=Grade.GOLDEN)
def _npu_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    seq_len: Tensor,
    scale_value: float,
    num_heads: int,
    num_kv_heads: int,
    out: Tensor,
) -> None:
    """Prefill of packed sequences with an additive ``mask`` [max length, max length], into ``out``."""
    op, each = "_npu_flash_attention", seq_len.tolist()
    if mask.dim() != 2 or mask.shape[0] < max(each):
        raise limits.not_simulated(op, "mask.shape", list(mask.shape))
    work = _packed(op, query, key, value, each, scale_value, (num_heads, num_kv_heads))
    work.bias = mask[None, None]
    out.copy_(work.attend()[0].reshape(out.shape))


@reference(
    "atb::_npu_flash_attention_unpad", source=op_plugin_test("test_atb_flash_attention_unpad"), grade=Grade.GOLDEN
)
def _npu_flash_attention_unpad(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    seq_len: Tensor,
    scale_value: float,
    num_heads: int,
    num_kv_heads: int,
    out: Tensor,
) -> None:
    """Attention within packed sequences, every token to every token, into ``out``."""
    op, each = "_npu_flash_attention_unpad", seq_len.tolist()
    work = _packed(op, query, key, value, each, scale_value, (num_heads, num_kv_heads))
    out.copy_(work.attend()[0].reshape(out.shape))
