# SPDX-License-Identifier: Apache-2.0
"""npu_fusion_attention, versions 1 to 3: the training form, ``softmax(scale * (pse + q k^T), masked) v``."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention import lengths, masks
from ascend_sim.references.attention.layouts import from_tokens_first, tokens_first
from ascend_sim.references.attention.requests import Requests
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import wheel_doc, wheel_meta

_OP = "npu_fusion_attention"
_NOTE = "softmax_max is the log-sum-exp and softmax_sum is 1, whose combination the backward pass uses"
_LAYOUTS = ("BSH", "SBH", "BSND", "BNSD", "TND")


@reference(
    f"npu::{_OP}",
    source=f"{wheel_doc(_OP)}; shapes: {wheel_meta(_OP)}",
    grade=Grade.DOCUMENTED,
    note=_NOTE,
)
def npu_fusion_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    input_layout: str,
    pse: Tensor | None = None,
    padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = masks.UNBOUNDED,
    next_tockens: int = masks.UNBOUNDED,
    inner_precise: int = 0,
    prefix: list[int] | None = None,
    actual_seq_qlen: list[int] | None = None,
    actual_seq_kvlen: list[int] | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: Tensor | None = None,
    dropout_mask: Tensor | None = None,
    seed: int = 0,
    offset: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor, int, int, int]:
    """Return ``(attention, softmax_max, softmax_sum, [], seed, offset, mask length)``.

    Without dropout (``keep_prob`` 1). ``softmax_max`` and ``softmax_sum`` are [B, N, S, 8], or [T, N, 8] packed, each
    value eight times. A mask of ones hides; without one every key is seen whatever ``sparse_mode``.
    """
    _refuse(_OP, keep_prob=keep_prob, dropout_mask=dropout_mask, prefix=prefix, padding_mask=padding_mask)
    work = _requests(query, key, value, head_num, input_layout, scale, actual_seq_qlen, actual_seq_kvlen)
    work.sink = sink
    work.bias = None if pse is None else pse.float() * scale
    _seen(work, atten_mask, sparse_mode, pre_tockens, next_tockens)
    return *_results(work, input_layout), seed, offset, 0


@reference(
    f"npu::{_OP}_v2",
    source=wheel_doc(f"{_OP}_v2"),
    grade=Grade.DOCUMENTED,
    note=f"{_NOTE}; pse_type 0 and 1 are simulated",
)
def npu_fusion_attention_v2(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str, **given: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, int, int, int]:
    """:func:`npu_fusion_attention` with rotary parts, if packed, and pse added after scaling (type 0)."""
    op, get = f"{_OP}_v2", given.get
    _refuse(op, **{name: given[name] for name in (*_UNUSED, "q_start_idx", "kv_start_idx") if name in given})
    scale, pse, pse_type = get("scale", 1.0), get("pse"), get("pse_type", 1)
    if pse_type not in (0, 1):
        raise limits.not_simulated(op, "pse_type", pse_type)
    rope = get("query_rope"), get("key_rope")
    if (rope[0] is None) != (rope[1] is None) or (rope[0] is not None and input_layout != "TND"):
        raise limits.refuse(op, "query_rope, key_rope", "given", "both or neither, in layout TND")
    if rope[0] is not None:
        query, key = torch.cat((query, rope[0]), -1), torch.cat((key, rope[1]), -1)
    sums = get("actual_seq_qlen"), get("actual_seq_kvlen")
    work = _requests(query, key, value, head_num, input_layout, scale, *sums)
    work.sink = get("sink")
    work.bias = None if pse is None else pse.float() * (scale if pse_type == 1 else 1.0)
    band = get("pre_tokens", masks.UNBOUNDED), get("next_tokens", masks.UNBOUNDED)
    _seen(work, get("atten_mask"), get("sparse_mode", 0), *band)
    return *_results(work, input_layout), get("seed", 0), get("offset", 0), 0


@reference(f"npu::{_OP}_v3", source=wheel_doc(f"{_OP}_v3"), grade=Grade.DOCUMENTED, note=_NOTE)
def npu_fusion_attention_v3(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    input_layout: str,
    pse: Tensor | None = None,
    padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = masks.UNBOUNDED,
    next_tockens: int = masks.UNBOUNDED,
    inner_precise: int = 0,
    prefix: list[int] | None = None,
    actual_seq_qlen: Tensor | None = None,
    actual_seq_kvlen: Tensor | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """:func:`npu_fusion_attention` with sums of lengths, seed and offset as tensors."""
    sums = [None if t is None else t.tolist() for t in (actual_seq_qlen, actual_seq_kvlen)]
    *results, _, _, _ = npu_fusion_attention(
        query, key, value, head_num, input_layout, pse, padding_mask, atten_mask, scale, keep_prob, pre_tockens,
        next_tockens, inner_precise, prefix, *sums, sparse_mode, gen_mask_parallel, sync, softmax_layout, sink,
    )  # fmt: skip
    return *results, torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)


_UNUSED = ("keep_prob", "dropout_mask", "prefix", "padding_mask")


def _refuse(op: str, **given: Any) -> None:
    """What is not simulated: dropout, prefixes and the rest of :data:`_UNUSED`."""
    for name, value in given.items():
        if value is not None and not (name == "keep_prob" and value == 1.0):
            raise limits.not_simulated(op, name, value if name == "keep_prob" else "given")


def _results(work: Requests, layout: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(attention, log-sum-exp eight times, ones, nothing)."""
    out, lse = work.attend()
    if layout != "TND":
        batch = len(work.query_lengths)
        out, lse = out.unflatten(0, (batch, -1)), lse.unflatten(0, (batch, -1)).transpose(1, 2)
    top = lse.unsqueeze(-1).expand(*lse.shape, 8).contiguous()
    return from_tokens_first(out, layout), top, torch.ones_like(top), out.new_empty(0)


def _requests(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    heads: int,
    layout: str,
    scale: float,
    query_sums: list[int] | None,
    key_sums: list[int] | None,
) -> Requests:
    if layout not in _LAYOUTS:
        raise limits.refuse(_OP, "input_layout", repr(layout), ", ".join(_LAYOUTS))
    q = tokens_first(query, layout, heads)
    size = q.shape[-1]
    groups = key.shape[-1] // size if layout in ("BSH", "SBH") else key.shape[layout.index("N")]
    if size > limits.numbers(_OP)["max_head_size"]:
        raise limits.refuse(_OP, "head size", size, f"at most {limits.numbers(_OP)['max_head_size']}")
    k, v = (tokens_first(t, layout, groups) for t in (key, value))
    if layout == "TND":
        each = lengths.from_sums(_OP, "actual_seq_qlen", _used(query_sums), q.shape[0])
        keys = lengths.from_sums(_OP, "actual_seq_kvlen", _used(key_sums), k.shape[0])
        starts, key_starts = [0, *accumulate(each[:-1])], [0, *accumulate(keys[:-1])]
        return Requests(q, starts, each, k, v, keys, scale, key_starts=key_starts)
    batch, longest, width = q.shape[0], q.shape[1], k.shape[1]
    q, k, v = (t.flatten(0, 1) for t in (q, k, v))
    starts, key_starts = [i * longest for i in range(batch)], [i * width for i in range(batch)]
    return Requests(q, starts, [longest] * batch, k, v, [width] * batch, scale, key_starts=key_starts)


def _used(sums: list[int] | None) -> list[int]:
    """Sums without the zeros at the end, which stand for requests that take no part."""
    used = list(sums or [])
    while len(used) > 1 and used[-1] == 0:
        used.pop()
    return used


def _seen(work: Requests, mask: Tensor | None, mode: int, before: int, after: int) -> None:
    if mask is None:
        return
    work.band = masks.band(_OP, mode, before, after, True)
    if mode >= 2:
        masks.check_compressed(_OP, mask, mode)
    elif mask.dim() == 4 and mask.shape[1] != 1:
        hidden = torch.where(mask != 0, -torch.inf, 0.0)
        work.bias = hidden if work.bias is None else work.bias + hidden
    else:
        work.mask = masks.full_mask(_OP, mask, len(work.query_lengths), max(work.query_lengths), max(work.key_lengths))
