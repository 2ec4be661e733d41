# SPDX-License-Identifier: Apache-2.0
"""npu_prompt_flash_attention and npu_incre_flash_attention, the older forms of the fused inference attention."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention import lengths, masks
from ascend_sim.references.attention.layouts import Layout, from_tokens_first, tokens_first
from ascend_sim.references.attention.paging import Pages, cache_tokens
from ascend_sim.references.attention.requests import Requests
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import wheel_doc

_PROMPT, _INCRE = "npu_prompt_flash_attention", "npu_incre_flash_attention"
_LAYOUTS = {name: Layout(*(name.split("_") * 2)[:2]) for name in ("BSH", "BSND", "BNSD", "BNSD_BSND", "TND")}
_QUANTISATION = [
    "deq_scale1",
    "quant_scale1",
    "deq_scale2",
    "quant_scale2",
    "quant_offset2",
    "dequant_scale1",
    "dequant_scale2",
    "antiquant_scale",
    "antiquant_offset",
    "kv_padding_size",
    "padding_mask",
]


def _layout(op: str, name: str, allowed: list[str]) -> Layout:
    if name not in allowed:
        raise limits.refuse(op, "input_layout", repr(name), ", ".join(allowed))
    return _LAYOUTS[name]


def _no_quantisation(op: str, given: dict[str, Any]) -> None:
    for name in _QUANTISATION:
        if given.get(name) is not None:
            raise limits.not_simulated(op, name, "given")


@reference(f"npu::{_PROMPT}", source=wheel_doc(_PROMPT), grade=Grade.DOCUMENTED)
def npu_prompt_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    atten_mask: Tensor | None = None,
    pse_shift: Tensor | None = None,
    actual_seq_lengths: list[int] | None = None,
    actual_seq_lengths_kv: list[int] | None = None,
    num_heads: int = 1,
    num_key_value_heads: int = 0,
    scale_value: float = 1.0,
    pre_tokens: int = masks.UNBOUNDED,
    next_tokens: int = 0,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
    **given: Any,
) -> Tensor:
    """Attention of whole prompts; the result is laid out like query (or as the layout's second half says)."""
    _no_quantisation(_PROMPT, given)
    layout = _layout(_PROMPT, input_layout, list(_LAYOUTS))
    groups = num_key_value_heads or num_heads
    q = tokens_first(query, layout.query, num_heads)
    k, v = (tokens_first(t, layout.query, groups) for t in (key, value))
    if layout.packed:
        each = lengths.from_sums(_PROMPT, "actual_seq_lengths", actual_seq_lengths or [], q.shape[0])
        keys = lengths.from_sums(_PROMPT, "actual_seq_lengths_kv", actual_seq_lengths_kv or [], k.shape[0])
        starts, key_starts = [0, *accumulate(each[:-1])], [0, *accumulate(keys[:-1])]
    else:
        batch, longest = q.shape[:2]
        each = lengths.per_request(_PROMPT, "actual_seq_lengths", actual_seq_lengths, batch, longest)
        keys = lengths.per_request(_PROMPT, "actual_seq_lengths_kv", actual_seq_lengths_kv, batch, k.shape[1])
        starts, key_starts = [i * longest for i in range(batch)], [i * k.shape[1] for i in range(batch)]
        q, k, v = (t.flatten(0, 1) for t in (q, k, v))
    work = Requests(q, starts, each, k, v, keys, scale_value, key_starts=key_starts, bias=pse_shift)
    work.band = masks.band(_PROMPT, sparse_mode, pre_tokens, next_tokens, atten_mask is not None)
    if sparse_mode >= 2:
        masks.check_compressed(_PROMPT, atten_mask, sparse_mode)
    elif atten_mask is not None:
        work.mask = masks.full_mask(_PROMPT, atten_mask, len(each), max(each), max(keys))
    out = work.attend()[0]
    return from_tokens_first(out if layout.packed else out.unflatten(0, (len(each), -1)), layout.output)


@reference(f"npu::{_INCRE}", source=wheel_doc(_INCRE), grade=Grade.DOCUMENTED)
def npu_incre_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    atten_mask: Tensor | None = None,
    pse_shift: Tensor | None = None,
    actual_seq_lengths: list[int] | None = None,
    block_table: Tensor | None = None,
    num_heads: int = 1,
    num_key_value_heads: int = 0,
    scale_value: float = 1.0,
    input_layout: str = "BSH",
    block_size: int = 0,
    **given: Any,
) -> Tensor:
    """Attention of one new token per request over ``actual_seq_lengths`` keys, padded or paged."""
    _no_quantisation(_INCRE, given)
    layout = _layout(_INCRE, input_layout, ["BSH", "BSND", "BNSD"])
    groups = num_key_value_heads or num_heads
    q = tokens_first(query, layout.query, num_heads)
    batch = q.shape[0]
    if q.shape[1] != 1:
        raise limits.refuse(_INCRE, "query's sequence length", q.shape[1], 1)
    starts, each, name = list(range(batch)), [1] * batch, "actual_seq_lengths"
    if block_table is not None:
        k, v = (cache_tokens(_INCRE, n, t, groups, block_size) for n, t in (("key", key), ("value", value)))
        keys = lengths.per_request(_INCRE, name, actual_seq_lengths, batch, block_table.shape[1] * block_size)
        pages = Pages(_INCRE, block_table, keys, block_size, k.shape[0])
        work = Requests(q.flatten(0, 1), starts, each, k, v, keys, scale_value, pages=pages)
    else:
        k, v = (tokens_first(t, layout.query, groups) for t in (key, value))
        keys = lengths.per_request(_INCRE, name, actual_seq_lengths, batch, k.shape[1])
        key_starts = [i * k.shape[1] for i in range(batch)]
        work = Requests(
            q.flatten(0, 1), starts, each, k.flatten(0, 1), v.flatten(0, 1), keys, scale_value, key_starts=key_starts
        )
    work.bias = pse_shift
    if atten_mask is not None:
        work.mask = masks.full_mask(_INCRE, atten_mask, batch, 1, max(keys))
    return from_tokens_first(work.attend()[0].unflatten(0, (batch, 1)), layout.output)
