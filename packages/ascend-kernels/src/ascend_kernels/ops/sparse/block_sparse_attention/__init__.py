"""Attention of tokens over selected blocks of their keys in pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.attention.tiles.checks import check_heads, check_options, check_scales
from ascend_kernels.ops.sparse.block_sparse_attention.calls import calls
from ascend_kernels.ops.sparse.block_sparse_attention.naive import block_sparse_attention_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.sparse.block_sparse_attention.triton import block_sparse_attention_triton

    return block_sparse_attention_triton


def _fake(
    query: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor, *_: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    output = query.new_empty(*query.shape[:2], value_cache.shape[-1])
    return output, query.new_empty(query.shape[:2], dtype=torch.float32)


_operator = register(
    "block_sparse_attention(Tensor query, Tensor key_cache, Tensor value_cache, Tensor block_table, Tensor requests, "
    "Tensor lengths, Tensor blocks, int block, Tensor? key_scale, Tensor? value_scale, Tensor? sinks, float scale, "
    "float soft_cap) -> (Tensor, Tensor)",
    naive=block_sparse_attention_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def block_sparse_attention(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    requests: torch.Tensor,
    lengths: torch.Tensor,
    blocks: torch.Tensor,
    block: int,
    *,
    scale: float | None = None,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    key_scale: torch.Tensor | None = None,
    value_scale: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax attention of each token over the blocks of keys that are listed for it, of those that it sees.

    Args:
        query: fp16, bf16 or fp32 ``[tokens, heads, K]``, and ``key_cache``, ``value_cache``, ``sinks``, ``key_scale``,
            ``value_scale``, ``scale``, ``soft_cap`` as :func:`ascend_kernels.paged_decode_attention` takes them.
        block_table: int32 or int64 ``[requests, pages]``; rows may be strided.
        requests: int32 or int64 ``[tokens]``, the request of each token.
        lengths: int32 or int64 ``[tokens]``, how many keys each token sees: its position plus 1.
        blocks: int32 or int64 ``[tokens, kv_heads or 1, selected]``, numbers of blocks of the sequence, each once;
            -1 is none, and a block behind ``lengths`` has no keys.
        block: keys of a block; divides a page, or is a multiple of pages.

    Returns:
        ``[tokens, heads, V]`` of the query's dtype, and fp32 ``[tokens, heads]``, the log-sum-exps; 0 and -inf where
        nothing is seen.

    Raises:
        ValueError: shapes, dtypes or scales that do not go together; says which.
    """
    name = "block_sparse_attention"
    check_heads(name, query, key_cache, value_cache, paged=True)
    check_scales(name, query, key_cache, value_cache, key_scale, value_scale)
    check_options(name, query, sinks, 0, soft_cap)
    tokens, kv_heads, page = query.shape[0], key_cache.shape[2], key_cache.shape[1]
    if (
        blocks.dim() != 3
        or blocks.shape[0] != tokens
        or blocks.shape[1] not in (1, kv_heads)
        or blocks.shape[2] == 0
        or requests.shape != (tokens,)
        or lengths.shape != (tokens,)
    ):
        raise ValueError(
            f"{name}: blocks {tuple(blocks.shape)}, requests {tuple(requests.shape)}, lengths {tuple(lengths.shape)} "
            f"for {tokens} tokens and {kv_heads} kv_heads: [tokens, kv_heads or 1, selected] and twice [tokens] go"
        )
    if block < 1 or (page % block and block % page):
        raise ValueError(f"{name}: blocks of {block} keys in pages of {page}: a divisor or a multiple goes")
    blocks = blocks.expand(-1, kv_heads, -1).contiguous()
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return _operator(
        query, key_cache, value_cache, block_table, requests, lengths, blocks, block, key_scale, value_scale, sinks,
        factor, soft_cap,
    )  # fmt: skip
