# SPDX-License-Identifier: Apache-2.0
"""One call of npu_fused_infer_attention_score, by names both versions share, and how it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention import fused_infer_checks as checks
from ascend_sim.references.attention import fused_infer_quant as quant
from ascend_sim.references.attention import lengths, masks
from ascend_sim.references.attention.antiquant import Antiquant
from ascend_sim.references.attention.layouts import FUSED_INFER, Layout, from_tokens_first, tokens_first
from ascend_sim.references.attention.paging import Pages, cache_tokens
from ascend_sim.references.attention.requests import Requests


@dataclass(slots=True)
class Call:
    """Arguments of either version, by one set of names."""

    op: str
    names: dict[str, str]
    query: Tensor
    key: Tensor
    value: Tensor
    heads: int
    key_heads: int
    scale: float
    input_layout: str
    query_lengths: Sequence[int] | None
    key_lengths: Sequence[int] | None
    mask: Tensor | None
    sparse_mode: int
    before: int
    after: int
    block_table: Tensor | None
    block_size: int
    bias: Tensor | None
    query_rope: Tensor | None
    key_rope: Tensor | None
    sink: Tensor | None
    inner_precise: int
    want_lse: bool
    query_scale: Tensor | None
    out_scale: Tensor | None
    out_offset: Tensor | None
    dequantise: Antiquant | None = None
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        self.key_heads = self.key_heads or self.heads
        layout = FUSED_INFER.get(self.input_layout)
        if layout is None:
            raise limits.refuse(self.op, "input_layout", repr(self.input_layout), ", ".join(FUSED_INFER))
        self.layout = layout


def _query(call: Call) -> tuple[Tensor, list[int], list[int]]:
    """Query tokens [tokens, H, D] and the starts and lengths of the requests in them."""
    query = quant.restored_query(call, tokens_first(call.query, call.layout.query, call.heads))
    if call.query_rope is not None:
        query = torch.cat((query, tokens_first(call.query_rope, call.layout.query, call.heads)), -1)
    if call.layout.packed:
        name = call.names["query_lengths"]
        if call.query_lengths is None:
            raise limits.refuse(call.op, name, None, f"a list of sums in layout {call.input_layout}")
        sums = lengths.from_sums(call.op, name, call.query_lengths, query.shape[0])
        return query, [0, *accumulate(sums[:-1])], sums
    batch, longest = query.shape[:2]
    each = [1] * batch
    if longest != 1:
        each = lengths.per_request(call.op, call.names["query_lengths"], call.query_lengths, batch, longest)
    return query.flatten(0, 1), [i * longest for i in range(batch)], each


def _paged(call: Call, batch: int, table: Tensor) -> tuple[Tensor, Tensor, Pages]:
    """The caches as [blocks, block_size, Hk, D] and where each request's tokens are in them."""
    key = cache_tokens(call.op, "key", call.key, call.key_heads, call.block_size)
    value = cache_tokens(call.op, "value", call.value, call.key_heads, call.block_size)
    if key.shape[:3] != value.shape[:3]:
        raise limits.refuse(call.op, "value.shape", list(call.value.shape), f"that of key, {list(call.key.shape)}")
    name, given = call.names["key_lengths"], call.key_lengths
    if given is None:
        raise limits.refuse(call.op, name, None, "a list of lengths with a block_table")
    if call.layout.packed and len(given) != batch:
        raise limits.refuse(call.op, f"len({name})", len(given), f"{batch}, one length per request")
    each = lengths.per_request(call.op, name, given, batch, table.shape[-1] * call.block_size)
    pages = Pages(call.op, table, each, call.block_size, key.shape[0])
    if call.key_rope is None:
        return key, value, pages
    rope = cache_tokens(call.op, "key_rope", call.key_rope, call.key_heads, call.block_size)
    pages, used = pages.compact()
    key, value = quant.restored_cache(call, key[used], value[used])
    return torch.cat((key, rope[used].to(key.dtype)), -1), value, pages


def _unpaged(call: Call, batch: int) -> tuple[Tensor, Tensor, list[int], list[int]]:
    """Key and value tokens [tokens, Hk, D] and the starts and lengths of the requests in them."""
    key = tokens_first(call.key, call.layout.query, call.key_heads)
    value = tokens_first(call.value, call.layout.query, call.key_heads)
    if key.shape[:-2] != value.shape[:-2]:
        raise limits.refuse(call.op, "value.shape", list(call.value.shape), f"that of key, {list(call.key.shape)}")
    if call.key_rope is not None:
        key = torch.cat((key, tokens_first(call.key_rope, call.layout.query, call.key_heads)), -1)
    name = call.names["key_lengths"]
    if call.layout.packed:
        if call.key_lengths is None or len(call.key_lengths) != batch:
            raise limits.refuse(call.op, name, call.key_lengths, f"{batch} sums in layout {call.input_layout}")
        each = lengths.from_sums(call.op, name, call.key_lengths, key.shape[0])
        return key, value, [0, *accumulate(each[:-1])], each
    longest = key.shape[1]
    each = lengths.per_request(call.op, name, call.key_lengths, batch, longest)
    return key.flatten(0, 1), value.flatten(0, 1), [i * longest for i in range(batch)], each


def _seen(call: Call, work: Requests) -> None:
    """Set the band and mask of ``work``."""
    longest, keys = max(work.query_lengths), max(work.key_lengths)
    mode, mask = call.sparse_mode, call.mask
    if not call.layout.packed and call.query_rope is None and call.query.shape[call.layout.query.index("S")] == 1:
        if mode >= 2:
            return
        mode = 1
    work.band = masks.band(call.op, mode, call.before, call.after, mask is not None)
    if mode >= 2:
        if longest > 1 or mask is not None:
            masks.check_compressed(call.op, mask, mode, values=longest > 1)
    elif mask is not None:
        work.mask = masks.full_mask(call.op, mask, len(work.query_lengths), longest, keys)
    elif mode == 1 and call.sparse_mode == 1:
        raise limits.refuse(call.op, "atten_mask", None, "a mask for sparse_mode 1")


def fused_infer(call: Call) -> tuple[Tensor, Tensor]:
    """Compute one call; returns the result and the log-sum-exp ([T, N, 1] packed, else [B, N, S, 1], or [0])."""
    checks.check_heads(call)
    quant.check(call)
    checks.check_tensors(call)
    if not call.query.numel():
        return call.query.new_empty(call.query.shape), call.query.new_empty(0, dtype=torch.float32)
    query, starts, each = _query(call)
    batch, longest = len(each), max(each)
    if call.layout.packed:
        checks.check_packed(call, query.shape[0], batch)
    if call.block_table is not None:
        checks.check_block_size(call, query.shape[-1], longest)
        key, value, pages = _paged(call, batch, call.block_table)
        work = Requests(query, starts, each, key, value, pages.lengths, call.scale, pages=pages)
    else:
        key, value, key_starts, key_each = _unpaged(call, batch)
        work = Requests(query, starts, each, key, value, key_each, call.scale, key_starts=key_starts)
    rope = 0 if call.query_rope is None else call.query_rope.shape[-1]
    checks.check_head_size(call, query.shape[-1] - rope, value.shape[-1], longest)
    checks.check_sink(call, value.shape[-1])
    work.bias, work.sink = call.bias, call.sink
    work.dequantise = None if call.query_scale is not None else call.dequantise
    _seen(call, work)
    out, lse = work.attend()
    return _arrange(call, out, lse, batch)


def _arrange(call: Call, out: Tensor, lse: Tensor, batch: int) -> tuple[Tensor, Tensor]:
    if not call.layout.packed:
        out, lse = out.unflatten(0, (batch, -1)), lse.unflatten(0, (batch, -1)).transpose(1, 2)
    result = from_tokens_first(quant.result(call, out), call.layout.output)
    return result, lse.unsqueeze(-1).contiguous() if call.want_lse else lse.new_empty(0)
