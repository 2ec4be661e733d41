# SPDX-License-Identifier: Apache-2.0
"""Choosing the keys that sparse attention looks at: the top ``sparse_count`` of ``sum_h w_h relu(q_h . k)``.

Equal scores come in the order of their positions, as the vendor's stable sort gives them; what a query does not see,
and what lies past its keys, is -1.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention.spans import (
    Spans,
    causal_limits,
    check_sparse_mode,
    key_spans,
    query_spans,
    rows,
)
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test

_UNBOUNDED = (1 << 63) - 1
_MAX_SCORES = 1 << 24
"""Products of heads held at once (float32, 64 MiB); longer queries are computed in slices."""

Score = Callable[[Tensor, Tensor], Tensor]
"""(rows of query tokens [R, S], rows of keys [R, K]) to scores [R, S, K] in float32."""


def _select(
    queries: Spans, keys: Spans, tokens: int, heads: int, sparse_mode: int, count: int, score: Score
) -> tuple[Tensor, Tensor]:
    """Positions [tokens, count] int32 and their scores float32 (-inf where the position is -1)."""
    found = torch.full((tokens, count), -1, dtype=torch.int32)
    values = torch.full((tokens, count), -torch.inf)
    for length, members in queries.equal():
        seen = causal_limits(length, torch.tensor([keys.lengths[i] for i in members]), sparse_mode)
        slots = keys.slots(members)
        width, lines = slots.shape[1], queries.slots(members)
        step = max(1, _MAX_SCORES // max(1, len(members) * heads * width)) if width else 0
        for start in range(0, length if width else 0, max(step, 1)):
            part = slice(start, start + step)
            scores = score(lines[:, part], slots)
            scores.masked_fill_(torch.arange(width) >= seen[:, part, None], -torch.inf)
            ordered, order = scores.sort(dim=-1, descending=True, stable=True)
            kept = min(width, count)
            ordered, order = ordered[..., :kept], order[..., :kept].int()
            order.masked_fill_(torch.arange(kept) >= seen[:, part, None], -1)
            found[lines[:, part], :kept] = order
            values[lines[:, part], :kept] = ordered
    return found, values


def _check(op: str, query: Tensor, key: Tensor, layouts: tuple[str, str], count: int) -> None:
    allowed = limits.numbers(op)
    if count not in range(1, allowed["max_count"] + 1) and count not in allowed["larger_counts"]:
        raise limits.refuse(op, "sparse_count", count, f"1 to {allowed['max_count']}, {allowed['larger_counts']}")
    if key.shape[-2] != 1:
        raise limits.refuse(op, "key heads", key.shape[-2], 1)
    if query.shape[-2] > allowed["max_heads"]:
        raise limits.refuse(op, "query heads", query.shape[-2], f"at most {allowed['max_heads']}")
    for name, tensor in (("query", query), ("key", key)):
        if tensor.shape[-1] != allowed["head_size"]:
            raise limits.refuse(op, f"{name}.shape[-1]", tensor.shape[-1], allowed["head_size"])
    block = key.shape[1]
    if layouts[1] == "PA_BSND" and (block % allowed["block_multiple"] or block > allowed["max_block"]):
        sizes = f"multiples of {allowed['block_multiple']} up to {allowed['max_block']}"
        raise limits.refuse(op, "block size", block, sizes)
    if layouts[1] != "PA_BSND" and layouts[0] != layouts[1]:
        raise limits.refuse(op, "layout_key", repr(layouts[1]), f"that of the query, {layouts[0]!r}, or 'PA_BSND'")


@reference(
    "npu::npu_lightning_indexer",
    source=f"{op_plugin_test('test_npu_lightning_indexer')}; "
    + cann_doc("ops-transformer", "attention/lightning_indexer/tests/pytest/lightning_indexer_golden.py"),
    grade=Grade.GOLDEN,
    note="the vendor's two goldens differ in what a query does not see: positions in the older, -1 in the newer",
)
def npu_lightning_indexer(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    *,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    block_table: Tensor | None = None,
    layout_query: str = "BSND",
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
    pre_tokens: int = _UNBOUNDED,
    next_tokens: int = _UNBOUNDED,
    return_value: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return positions [..., 1, sparse_count] int32 and, if asked for, their scores in query's dtype.

    Shapes: query [B, S, N, D] or [T, N, D], weights the same without D, key [B, S, 1, D], [T, 1, D] or pages
    [blocks, block_size, 1, D].
    """
    op = "npu_lightning_indexer"
    _check(op, query, key, (layout_query, layout_key), sparse_count)
    check_sparse_mode(op, sparse_mode, pre_tokens, next_tokens)
    if return_value and layout_key == "PA_BSND":
        raise limits.refuse(op, "return_value", True, "False for keys in layout PA_BSND")
    spans = query_spans(op, layout_query, query, actual_seq_lengths_query)
    name = "actual_seq_lengths_key"
    key_lines = key_spans(op, layout_key, key, actual_seq_lengths_key, block_table, len(spans.lengths), name)
    q, k, w = rows(query, layout_query), rows(key, layout_key)[:, 0], rows(weights, layout_query)

    def score(lines: Tensor, slots: Tensor) -> Tensor:
        products = torch.matmul(q[lines].float().flatten(1, 2), k[slots].float().transpose(1, 2)).relu_()
        return torch.matmul(w[lines].float().unsqueeze(2), products.unflatten(1, (*lines.shape[1:], -1))).squeeze(2)

    found, values = _select(spans, key_lines, q.shape[0], q.shape[1], sparse_mode, sparse_count, score)
    shape = (*query.shape[:-2], 1, sparse_count)
    return found.view(shape), values.to(query.dtype).view(shape) if return_value else query.new_empty(0)


@reference(
    "npu::npu_quant_lightning_indexer",
    source=f"{op_plugin_test('test_npu_quant_lightning_indexer')}; "
    + cann_doc("ops-transformer", "attention/quant_lightning_indexer/README.md"),
    grade=Grade.GOLDEN,
)
def npu_quant_lightning_indexer(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    query_dequant_scale: Tensor,
    key_dequant_scale: Tensor,
    query_quant_mode: int,
    key_quant_mode: int,
    *,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    block_table: Tensor | None = None,
    layout_query: str = "BSND",
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
    pre_tokens: int = _UNBOUNDED,
    next_tokens: int = _UNBOUNDED,
    query_dtype: int | None = None,
    key_dtype: int | None = None,
) -> Tensor:
    """:func:`npu_lightning_indexer` of int8 queries and keys with one scale per token and head (mode 0).

    Scales are shaped like weights, and like key without D. As the vendor's golden does, weight times query scale is
    rounded to their dtype and the rectified product, divided by 1024, to float16.
    """
    op = "npu_quant_lightning_indexer"
    _check(op, query, key, (layout_query, layout_key), sparse_count)
    check_sparse_mode(op, sparse_mode, pre_tokens, next_tokens)
    for argument, mode in (("query_quant_mode", query_quant_mode), ("key_quant_mode", key_quant_mode)):
        if mode != 0:
            raise limits.refuse(op, argument, mode, "0 (per token and head)")
    if query_dtype is not None or key_dtype is not None:
        raise limits.not_simulated(op, "query_dtype, key_dtype", (query_dtype, key_dtype))
    spans = query_spans(op, layout_query, query, actual_seq_lengths_query)
    name = "actual_seq_lengths_key"
    key_lines = key_spans(op, layout_key, key, actual_seq_lengths_key, block_table, len(spans.lengths), name)
    q, k = rows(query, layout_query), rows(key, layout_key)[:, 0]
    w = rows(weights * query_dequant_scale, layout_query).float()
    key_scale = rows(key_dequant_scale, layout_key)[:, 0].float()

    def score(lines: Tensor, slots: Tensor) -> Tensor:
        # Sums of 128 products of int8 are exact in float32.
        products = torch.matmul(q[lines].float().flatten(1, 2), k[slots].float().transpose(1, 2)).relu_()
        rounded = products.div_(1024).half().float().unflatten(1, (*lines.shape[1:], -1))
        return torch.matmul(w[lines].unsqueeze(2), rounded).squeeze(2).mul_(key_scale[slots][:, None])

    found, _ = _select(spans, key_lines, q.shape[0], q.shape[1], sparse_mode, sparse_count, score)
    return found.view(*query.shape[:-2], 1, sparse_count)
