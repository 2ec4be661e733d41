"""Attention of one token per request over its keys in pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.attention.paged_decode_attention.calls import calls
from ascend_kernels.ops.attention.paged_decode_attention.naive import paged_decode_attention_naive
from ascend_kernels.ops.attention.tiles.checks import check_heads, check_options, check_scales


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.attention.paged_decode_attention.triton import paged_decode_attention_triton

    return paged_decode_attention_triton


def _fake(
    query: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor, *_: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    output = query.new_empty(*query.shape[:2], value_cache.shape[-1])
    return output, query.new_empty(query.shape[:2], dtype=torch.float32)


_operator = register(
    "paged_decode_attention(Tensor query, Tensor key_cache, Tensor value_cache, Tensor block_table, Tensor seq_lens, "
    "Tensor? key_scale, Tensor? value_scale, Tensor? sinks, float scale, int window, float soft_cap) "
    "-> (Tensor, Tensor)",
    naive=paged_decode_attention_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def paged_decode_attention(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    *,
    scale: float | None = None,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    key_scale: torch.Tensor | None = None,
    value_scale: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax attention of each request's last token over its keys and values in pages (vLLM's PagedAttention).

    ``score = cap(scale * query . key)`` with ``cap(x) = soft_cap * tanh(x / soft_cap)`` if ``soft_cap`` is not 0.

    Args:
        query: fp16, bf16 or fp32 ``[requests, heads, K]``; rows strided at will.
        key_cache: ``[blocks, page, kv_heads, K]`` of the query's dtype or int8, heads a multiple of kv_heads; strided
            at will but for its rows. Any K, and any page.
        value_cache: ``[blocks, page, kv_heads, V]``, likewise; may be a part of the key cache (latent attention).
            V up to 512 on Ascend.
        block_table: int32 or int64 ``[requests, pages]``, the numbers of each request's pages; rows may be strided.
        seq_lens: int32 or int64 ``[requests]``, keys of each; 0 gives an output of 0.
        scale: default ``K ** -0.5``.
        window: the last so many keys are seen; 0: all.
        soft_cap: bound of the scores; 0: none.
        sinks: ``[heads]``, scores that take part in the softmax without a value (GPT-OSS), or None.
        key_scale: fp32 ``[kv_heads, K]``: int8 keys times this are the keys.
        value_scale: fp32 ``[kv_heads, V]``, likewise.

    Returns:
        ``[requests, heads, V]`` of the query's dtype, and fp32 ``[requests, heads]``, the log-sum-exps (sinks
        are part of them), for :func:`ascend_kernels.merge_attention`.

    Raises:
        ValueError: shapes, dtypes or scales that do not go together; says which.
    """
    check_heads("paged_decode_attention", query, key_cache, value_cache, paged=True)
    check_scales("paged_decode_attention", query, key_cache, value_cache, key_scale, value_scale)
    check_options("paged_decode_attention", query, sinks, window, soft_cap)
    requests = query.shape[0]
    if block_table.dim() != 2 or block_table.shape[0] < requests or seq_lens.shape != (requests,):
        raise ValueError(
            f"paged_decode_attention: block_table {tuple(block_table.shape)} and seq_lens {tuple(seq_lens.shape)} for "
            f"{requests} requests: [requests, pages] and [requests] go"
        )
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return _operator(
        query, key_cache, value_cache, block_table, seq_lens, key_scale, value_scale, sinks, factor, window, soft_cap
    )
