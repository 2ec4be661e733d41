# SPDX-License-Identifier: Apache-2.0
"""Attention over a chosen set of latent keys: npu_sparse_flash_attention and its form with an int8 cache."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention.chosen import Chosen
from ascend_sim.references.attention.spans import (
    check_sparse_mode,
    key_spans,
    query_spans,
    rows,
)
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test

_UNBOUNDED = (1 << 63) - 1


def _check(op: str, query: Tensor, key: Tensor, block: int, layouts: tuple[str, str], attention_mode: int) -> None:
    allowed = limits.numbers(op)
    if attention_mode != 2:
        raise limits.refuse(op, "attention_mode", attention_mode, "2 (latent keys shared with values)")
    if key.shape[-2] != 1:
        raise limits.refuse(op, "key heads", key.shape[-2], 1)
    if query.shape[-2] not in allowed["heads"]:
        raise limits.refuse(op, "query heads", query.shape[-2], allowed["heads"])
    for name, tensor in (("query", query), ("key", key)):
        if tensor.shape[-1] != allowed[f"{name}_size"]:
            raise limits.refuse(op, f"{name}.shape[-1]", tensor.shape[-1], allowed[f"{name}_size"])
    if block not in allowed["sparse_blocks"]:
        raise limits.refuse(op, "sparse_block_size", block, allowed["sparse_blocks"])
    page = key.shape[1]
    if layouts[1] == "PA_BSND" and (page % allowed["block_multiple"] or page > allowed["max_block"] or page % block):
        sizes = f"multiples of {allowed['block_multiple']} and of sparse_block_size up to {allowed['max_block']}"
        raise limits.refuse(op, "block size", page, sizes)
    if layouts[1] != "PA_BSND" and layouts[0] != layouts[1]:
        raise limits.refuse(op, "layout_kv", repr(layouts[1]), f"that of the query, {layouts[0]!r}, or 'PA_BSND'")


@reference(
    "npu::npu_sparse_flash_attention",
    source=f"{op_plugin_test('test_npu_sparse_flash_attention')}; "
    + cann_doc("ops-transformer", "attention/sparse_flash_attention/README.md"),
    grade=Grade.GOLDEN,
)
def npu_sparse_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor | None,
    sparse_indices: Tensor,
    scale_value: float,
    *,
    block_table: Tensor | None = None,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_kv: Tensor | None = None,
    query_rope: Tensor | None = None,
    key_rope: Tensor | None = None,
    sparse_block_size: int = 1,
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = _UNBOUNDED,
    next_tokens: int = _UNBOUNDED,
    attention_mode: int = 0,
    return_softmax_lse: bool = False,
    sinks: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the result shaped like query, and the softmax's maximum and sum ([1, T, N] packed, [B, 1, S, N], or [0]).

    Shapes: query [B, S, N, 512] or [T, N, 512], sparse_indices the same with [..., 1, K], key and value
    [B, S, 1, 512], [T, 1, 512] or pages [blocks, block_size, 1, 512]; the rope parts have 64 for 512.
    """
    op = "npu_sparse_flash_attention"
    _check(op, query, key, sparse_block_size, (layout_query, layout_kv), attention_mode)
    check_sparse_mode(op, sparse_mode, pre_tokens, next_tokens)
    if value is None:
        raise limits.refuse(op, "value", None, "a tensor before CANN 9.2.0")
    if query_rope is None or key_rope is None:
        raise limits.refuse(op, "query_rope, key_rope", "not both given", "both")
    if return_softmax_lse and layout_kv == "PA_BSND":
        raise limits.refuse(op, "return_softmax_lse", True, "False for keys in layout PA_BSND")
    queries = query_spans(op, layout_query, query, actual_seq_lengths_query)
    name = "actual_seq_lengths_kv"
    keys = key_spans(op, layout_kv, key, actual_seq_lengths_kv, block_table, len(queries.lengths), name)
    latent, rope = rows(key, layout_kv)[:, 0], rows(key_rope, layout_kv)[:, 0]
    other = None if value.data_ptr() == key.data_ptr() else rows(value, layout_kv)[:, 0]

    def gather(slots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        chosen = latent[slots].float()
        return chosen, rope[slots].float(), chosen if other is None else other[slots].float()

    work = Chosen(
        query=rows(query, layout_query),
        query_rope=rows(query_rope, layout_query),
        gather=gather,
        indices=rows(sparse_indices, layout_query)[:, 0],
        block=sparse_block_size,
        scale=scale_value,
        sink=sinks,
    )
    out, top, total = work.attend(queries, keys, sparse_mode)
    if not return_softmax_lse:
        return out.view(query.shape), top.new_empty(0), top.new_empty(0)
    if layout_query == "TND":
        return out, top[None], total[None]
    shape = (query.shape[0], 1, *query.shape[1:3])
    return out.view(query.shape), top.view(shape), total.view(shape)


@reference(
    "npu::npu_kv_quant_sparse_flash_attention",
    source=f"{op_plugin_test('test_npu_kv_quant_sparse_flash_attention')}; "
    + cann_doc("ops-transformer", "attention/kv_quant_sparse_flash_attention/README.md"),
    grade=Grade.GOLDEN,
)
def npu_kv_quant_sparse_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sparse_indices: Tensor,
    scale_value: float,
    key_quant_mode: int,
    value_quant_mode: int,
    *,
    key_dequant_scale: Tensor | None = None,
    value_dequant_scale: Tensor | None = None,
    block_table: Tensor | None = None,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_kv: Tensor | None = None,
    sparse_block_size: int = 1,
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = _UNBOUNDED,
    next_tokens: int = _UNBOUNDED,
    attention_mode: int = 0,
    quant_scale_repo_mode: int = 1,
    tile_size: int = 128,
    rope_head_dim: int = 64,
    key_dtype: int | None = None,
    value_dtype: int | None = None,
) -> Tensor:
    """Return [..., N, 512] for query [..., N, 576] (latent and rope part) over tokens of 656 bytes.

    A token is 512 int8, then 64 rope elements of query's dtype, then 4 float32 scales, one per tile of 128. The
    dequantised latent is rounded to query's dtype and is key and value alike.
    """
    op = "npu_kv_quant_sparse_flash_attention"
    _check(op, query, key, sparse_block_size, (layout_query, layout_kv), attention_mode)
    check_sparse_mode(op, sparse_mode, pre_tokens, next_tokens)
    modes = {
        "key_quant_mode": (key_quant_mode, 2),
        "value_quant_mode": (value_quant_mode, 2),
        "quant_scale_repo_mode": (quant_scale_repo_mode, 1),
        "tile_size": (tile_size, 128),
        "rope_head_dim": (rope_head_dim, 64),
    }
    for argument, (given, allowed) in modes.items():
        if given != allowed:
            raise limits.refuse(op, argument, given, allowed)
    if key_dtype is not None or value_dtype is not None:
        raise limits.not_simulated(op, "key_dtype, value_dtype", (key_dtype, value_dtype))
    queries = query_spans(op, layout_query, query, actual_seq_lengths_query)
    name = "actual_seq_lengths_kv"
    keys = key_spans(op, layout_kv, key, actual_seq_lengths_kv, block_table, len(queries.lengths), name)
    size, rope_bytes = query.shape[-1] - rope_head_dim, rope_head_dim * query.element_size()
    stored, tokens = rows(key, layout_kv)[:, 0], rows(query, layout_query)

    def gather(slots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        packed, rope, scales = stored[slots].split((size, rope_bytes, stored.shape[1] - size - rope_bytes), -1)
        restored = packed.unflatten(-1, (-1, tile_size)) * scales.contiguous().view(torch.float32)[..., None]
        latent = restored.flatten(-2).to(query.dtype).float()
        return latent, rope.contiguous().view(query.dtype).float(), latent

    work = Chosen(
        query=tokens[..., :size],
        query_rope=tokens[..., size:],
        gather=gather,
        indices=rows(sparse_indices, layout_query)[:, 0],
        block=sparse_block_size,
        scale=scale_value,
    )
    return work.attend(queries, keys, sparse_mode)[0].view(*query.shape[:-1], size)
