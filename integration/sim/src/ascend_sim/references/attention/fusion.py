# SPDX-License-Identifier: Apache-2.0
"""npu_fusion_attention: the training form, ``softmax(scale * (pse + q k^T), masked) v``."""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention import lengths, masks
from ascend_sim.references.attention.layouts import from_tokens_first, tokens_first
from ascend_sim.references.attention.requests import Requests
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import wheel_doc, wheel_meta

_OP = "npu_fusion_attention"
_LAYOUTS = ("BSH", "SBH", "BSND", "BNSD", "TND")


@reference(
    f"npu::{_OP}",
    source=f"{wheel_doc(_OP)}; shapes: {wheel_meta(_OP)}",
    grade=Grade.DOCUMENTED,
    note="softmax_max is the log-sum-exp and softmax_sum is 1, whose combination the backward pass uses",
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
    if input_layout not in _LAYOUTS:
        raise limits.refuse(_OP, "input_layout", repr(input_layout), ", ".join(_LAYOUTS))
    if keep_prob != 1.0 or dropout_mask is not None:
        raise limits.not_simulated(_OP, "keep_prob", keep_prob)
    if prefix is not None or padding_mask is not None:
        raise limits.not_simulated(_OP, "prefix" if prefix is not None else "padding_mask", "given")
    work = _requests(query, key, value, head_num, input_layout, scale, actual_seq_qlen, actual_seq_kvlen)
    work.sink = sink
    if pse is not None:
        work.bias = pse.float() * scale
    _seen(work, atten_mask, sparse_mode, pre_tockens, next_tockens)
    out, lse = work.attend()
    if input_layout == "TND":
        shape = (*lse.shape, 8)
    else:
        batch = len(work.query_lengths)
        out, lse = out.unflatten(0, (batch, -1)), lse.unflatten(0, (batch, -1)).transpose(1, 2)
        shape = (*lse.shape, 8)
    top = lse.unsqueeze(-1).expand(shape).contiguous()
    return from_tokens_first(out, input_layout), top, torch.ones(shape), out.new_empty(0), seed, offset, 0


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
