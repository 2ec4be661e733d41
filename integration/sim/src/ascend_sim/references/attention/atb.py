# SPDX-License-Identifier: Apache-2.0
"""Attention of the Ascend Transformer Boost library: packed queries, paged or packed keys, in-place result."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention import atb_requests as forms
from ascend_sim.references.attention.atb_masks import causal
from ascend_sim.references.attention.masks import Band
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test


def _decode(
    op: str,
    query: Tensor,
    caches: tuple[Tensor, Tensor],
    heads: tuple[int, int],
    scale: float,
    table: Tensor,
    each: list[int],
    out: Tensor,
) -> None:
    """One token a request over ``each`` cached tokens, into ``out``."""
    if len(each) != query.shape[0]:
        raise limits.refuse(op, "len(context_lens)", len(each), f"{query.shape[0]}, one per query token")
    work = forms.paged(op, query, caches, heads, scale, table, [1] * len(each), each)
    out.copy_(work.attend()[0].reshape(out.shape))


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
    heads, each = (num_heads, num_kv_heads), context_lens.tolist()
    _decode("_npu_paged_attention", query, (key_cache, value_cache), heads, scale_value, block_table, each, out)


@reference(
    "atb::_npu_paged_attention_get_workspace",
    "atb::_npu_paged_attention_v2_get_workspace",
    "atb::_npu_multi_head_latent_attention_get_workspace.lse",
    source=op_plugin_test("test_atb_paged_attention"),
    grade=Grade.GUESSED,
    note="the simulation needs no workspace; the size is arbitrary",
)
def _get_workspace(*arguments: object, **given: object) -> Tensor:
    """A one-dimensional byte tensor."""
    return torch.empty(16, dtype=torch.uint8)


@reference("atb::_npu_paged_attention_mla", source=op_plugin_test("test_atb_paged_attention_mla"), grade=Grade.GOLDEN)
def _npu_paged_attention_mla(
    query: Tensor,
    key_cache: Tensor,
    num_kv_heads: int,
    num_heads: int,
    scale_value: float,
    block_table: Tensor,
    context_lens: Tensor,
    mla_vheadsize: int,
    out: Tensor,
) -> None:
    """Decode over one cache whose first ``mla_vheadsize`` elements of a token are the value, into ``out``."""
    op, heads = "_npu_paged_attention_mla", (num_heads, num_kv_heads)
    key = forms.cache_view(op, "key_cache", key_cache, num_kv_heads)
    caches = (key, key[..., :mla_vheadsize])
    _decode(op, query, caches, heads, scale_value, block_table, context_lens.tolist(), out)


@reference(
    "atb::_npu_paged_attention_v2.out",
    source=op_plugin_test("test_atb_paged_attention_v2"),
    grade=Grade.GOLDEN,
    note="masks of types 0 (none), 1 and 2 (added to the scores) are simulated",
)
def _npu_paged_attention_v2(
    query: Tensor,
    key_cache: Tensor,
    block_table: Tensor,
    context_lens: list[int],
    *,
    value_cache: Tensor | None = None,
    mask: Tensor | None = None,
    num_kv_heads: int = 0,
    num_heads: int = 0,
    scale_value: float = 1.0,
    mask_type: int = 0,
    workspace: Tensor | None = None,
    out: Tensor,
) -> Tensor:
    """:func:`_npu_paged_attention` with lengths on the host and a mask [B, 1, S] or [B, H, 1, S] added to the scores.

    Without a value cache the value is the start of the key, as wide as ``out``.
    """
    op = "_npu_paged_attention_v2"
    if mask_type not in (0, 1, 2):
        raise limits.not_simulated(op, "mask_type", mask_type)
    if (mask is None) != (mask_type == 0):
        raise limits.refuse(
            op, "mask", "None" if mask is None else "given", f"a mask unless mask_type is 0 ({mask_type})"
        )
    key = forms.cache_view(op, "key_cache", key_cache, num_kv_heads)
    value = key[..., : out.shape[-1]] if value_cache is None else value_cache
    each = list(context_lens)
    if len(each) != query.shape[0]:
        raise limits.refuse(op, "len(context_lens)", len(each), f"{query.shape[0]}, one per query token")
    heads = (num_heads, num_kv_heads)
    work = forms.paged(op, query, (key, value), heads, scale_value, block_table, [1] * len(each), each)
    if mask is not None:
        work.bias = mask if mask.dim() == 4 else mask.unsqueeze(1)
    return out.copy_(work.attend()[0].reshape(out.shape))


def _prefill_over_cache(
    op: str,
    query: Tensor,
    caches: tuple[Tensor, Tensor],
    table: Tensor,
    lengths: tuple[Tensor, Tensor],
    heads: tuple[int, int],
    scale: float,
    band: Band,
    out: Tensor,
) -> None:
    """``lengths`` = (new tokens, cached tokens) of each request, into ``out``."""
    each, context = (t.tolist() for t in lengths)
    work = forms.paged(op, query, caches, heads, scale, table, each, context)
    work.band = band
    out.copy_(work.attend()[0].reshape(out.shape))


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
    caches = (key_cache, value_cache)
    work = forms.paged(op, query, caches, (num_heads, num_kv_heads), scale_value, block_table, each, context)
    for request, start in enumerate(work.query_starts):
        rows = slice(start, start + each[request])
        part = forms.one(work, request)
        part.bias = mask[None, None, rows, : context[request]]
        out[rows] = part.attend()[0].reshape(out[rows].shape)


@reference(
    "atb::_npu_paged_attention_splitfuse_v2",
    source=op_plugin_test("test_atb_paged_attention_splitfuse_v2"),
    grade=Grade.GOLDEN,
    note="mask_type 5, the compressed causal mask, is simulated",
)
def _npu_paged_attention_splitfuse_v2(
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
    *,
    mask_type: int | None = 5,
    out: Tensor,
) -> None:
    """:func:`_npu_paged_attention_splitfuse`, causal, with the compressed mask [2048, 2048]."""
    op = "_npu_paged_attention_splitfuse_v2"
    if mask_type != 5:
        raise limits.not_simulated(op, "mask_type", mask_type)
    band = causal(op, mask, (2048,))
    heads, lengths = (num_heads, num_kv_heads), (seq_len, context_lens)
    _prefill_over_cache(op, query, (key_cache, value_cache), block_table, lengths, heads, scale_value, band, out)


@reference(
    "atb::_npu_flash_attention_qlens", source=op_plugin_test("test_atb_flash_attention_qlens"), grade=Grade.GOLDEN
)
def _npu_flash_attention_qlens(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    block_table: Tensor,
    mask: Tensor,
    seq_len: Tensor,
    context_lens: Tensor,
    num_kv_heads: int,
    num_heads: int,
    scale_value: float,
    out: Tensor,
) -> None:
    """Causal prefill of ``seq_len`` [B] tokens over ``context_lens`` [B] cached ones, with a mask [128, 128]."""
    op = "_npu_flash_attention_qlens"
    if key_cache.shape[1] != 128:
        raise limits.refuse(op, "block size", key_cache.shape[1], 128)
    band = causal(op, mask, (128,))
    heads, lengths = (num_heads, num_kv_heads), (seq_len, context_lens)
    _prefill_over_cache(op, query, (key_cache, value_cache), block_table, lengths, heads, scale_value, band, out)
