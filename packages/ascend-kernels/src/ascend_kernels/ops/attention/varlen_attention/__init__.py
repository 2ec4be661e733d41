"""Attention of packed sequences over their keys, laid out or in pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.attention.tiles.checks import check_heads, check_options, check_scales
from ascend_kernels.ops.attention.varlen_attention.calls import calls
from ascend_kernels.ops.attention.varlen_attention.naive import varlen_attention_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.attention.varlen_attention.triton import varlen_attention_triton

    return varlen_attention_triton


def _fake(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any) -> tuple[torch.Tensor, torch.Tensor]:
    output = query.new_empty(*query.shape[:2], value.shape[-1])
    return output, query.new_empty(query.shape[:2], dtype=torch.float32)


_operator = register(
    "varlen_attention(Tensor query, Tensor key, Tensor value, Tensor cu_seqlens, Tensor key_lens, Tensor? block_table, "
    "Tensor? key_scale, Tensor? value_scale, Tensor? sinks, float scale, bool causal, int window, float soft_cap) "
    "-> (Tensor, Tensor)",
    naive=varlen_attention_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def varlen_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seqlens: torch.Tensor,
    *,
    cu_seqlens_k: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    seq_lens: torch.Tensor | None = None,
    scale: float | None = None,
    causal: bool = True,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    key_scale: torch.Tensor | None = None,
    value_scale: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax attention of packed sequences (FlashAttention-2; arXiv 2307.08691) over keys laid out or in pages.

    The last query of a sequence stands at its last key: keys before the first query are a prefix that all see.

    Args:
        query: fp16, bf16 or fp32 ``[tokens, heads, K]``, sequences one after another; rows strided at will.
        key: ``[keys, kv_heads, K]``, likewise, heads a multiple of kv_heads; or with ``block_table`` a cache
            ``[blocks, page, kv_heads, K]``, of the query's dtype or int8 with scales.
        value: ``[keys, kv_heads, V]`` or ``[blocks, page, kv_heads, V]``; V up to 512 on Ascend.
        cu_seqlens: int32 or int64 ``[sequences + 1]``, first query of each sequence, not decreasing, from 0 on.
        cu_seqlens_k: likewise for keys that are laid out; default: as many keys as queries.
        block_table: int32 or int64 ``[sequences, pages]``, the numbers of each sequence's pages; rows may be strided.
        seq_lens: int32 or int64 ``[sequences]``, keys of each sequence in pages, prefix and new ones.
        scale: default ``K ** -0.5``.
        causal: a query sees no key behind its own.
        window: a query sees its own key and those before it, so many in all; 0: no bound. Needs ``causal``.
        soft_cap: bound of the scores; 0: none.
        sinks: ``[heads]``, scores that take part in the softmax without a value (GPT-OSS), or None.
        key_scale: fp32 ``[kv_heads, K]``: int8 keys times this are the keys.
        value_scale: fp32 ``[kv_heads, V]``, likewise.

    Returns:
        ``[tokens, heads, V]`` of the query's dtype, and fp32 ``[tokens, heads]``, the log-sum-exps (sinks are part of
        them), for :func:`ascend_kernels.merge_attention`. Where nothing is seen, 0 and -inf.

    Raises:
        ValueError: shapes, dtypes, scales or options that do not go together; says which.
    """
    name = "varlen_attention"
    paged = block_table is not None
    check_heads(name, query, key, value, paged)
    check_scales(name, query, key, value, key_scale, value_scale)
    check_options(name, query, sinks, window, soft_cap)
    if window and not causal:
        raise ValueError(f"{name}: window {window} without causal: a window ends at the query's own key")
    sequences = cu_seqlens.shape[0] - 1
    if paged != (seq_lens is not None) or (paged and cu_seqlens_k is not None):
        raise ValueError(f"{name}: block_table and seq_lens go together, for keys in pages; cu_seqlens_k is for others")
    lengths = seq_lens if seq_lens is not None else cu_seqlens if cu_seqlens_k is None else cu_seqlens_k
    right = (sequences,) if paged else (sequences + 1,)
    if cu_seqlens.dim() != 1 or lengths.shape != right or (block_table is not None and len(block_table) < sequences):
        raise ValueError(
            f"{name}: cu_seqlens {tuple(cu_seqlens.shape)}, lengths of keys {tuple(lengths.shape)}, block_table "
            f"{None if block_table is None else tuple(block_table.shape)}: [sequences + 1], [sequences] (laid out: "
            "+ 1) and [sequences, pages] go"
        )
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return _operator(
        query, key, value, cu_seqlens, lengths, block_table, key_scale, value_scale, sinks, factor, causal, window,
        soft_cap,
    )  # fmt: skip
