# SPDX-License-Identifier: Apache-2.0
"""Native sparse attention: compressing windows of keys to one token each, and attending to selected blocks of keys."""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention import lengths
from ascend_sim.references.attention.paging import Pages
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_doc

_MAX_GATHERED = 1 << 24
"""Elements of selected keys held at once; more query tokens are computed in slices."""


def _check_window(op: str, size: int, stride: int, weight: Tensor) -> None:
    if size % 16 or stride % 16 or size < stride or stride <= 0:
        sizes = "multiples of 16, the stride at most the size"
        raise limits.refuse(op, "compress_block_size, compress_stride", [size, stride], sizes)
    if weight.shape[0] != size:
        raise limits.refuse(op, "weight.shape[0]", weight.shape[0], f"{size}, compress_block_size")


@reference(
    "npu::npu_nsa_compress",
    source=f"{wheel_doc('npu_nsa_compress')}; {cann_doc('ops-transformer', 'attention/nsa_compress/README.md')}",
    grade=Grade.DOCUMENTED,
    note="the function the page leaves open is the sum of tokens times weight, as that of npu_nsa_compress_infer",
)
def npu_nsa_compress(
    input: Tensor,
    weight: Tensor,
    compress_block_size: int,
    compress_stride: int,
    *,
    actual_seq_len: list[int] | None = None,
) -> Tensor:
    """The weighted sums of each request's windows of tokens [T, N, D], request after request.

    ``weight`` [size, N]; ``actual_seq_len`` are sums; a request of fewer tokens than a window gives nothing.
    """
    op = "npu_nsa_compress"
    _check_window(op, compress_block_size, compress_stride, weight)
    each = lengths.from_sums(op, "actual_seq_len", actual_seq_len or [], input.shape[0])
    out = []
    for tokens in input.float().split(each):
        if tokens.shape[0] >= compress_block_size:
            windows = tokens.unfold(0, compress_block_size, compress_stride)
            out.append(torch.einsum("tndw,wn->tnd", windows, weight.float()))
    return torch.cat(out).to(input.dtype) if out else input.new_empty(0, *input.shape[1:])


@reference(
    "npu::npu_nsa_compress_infer.cache",
    source=f"{wheel_doc('npu_nsa_compress_infer')}; "
    + cann_doc("ops-transformer", "attention/nsa_compress_with_cache/README.md"),
    grade=Grade.DOCUMENTED,
)
def npu_nsa_compress_infer(
    input: Tensor,
    weight: Tensor,
    slot_mapping: Tensor,
    compress_block_size: int,
    compress_stride: int,
    page_block_size: int,
    *,
    block_table: Tensor | None = None,
    actual_seq_len: list[int] | None = None,
    cache: Tensor,
) -> Tensor:
    """Write the last window of each request whose window just filled up to its slot of ``cache`` [slots, N, D].

    ``input`` are pages [blocks, page_block_size, N, D]; a window fills up at length s with ``s >= size`` and
    ``(s - size) % stride == 0``.
    """
    op = "npu_nsa_compress_infer"
    _check_window(op, compress_block_size, compress_stride, weight)
    if block_table is None or actual_seq_len is None or input.shape[1] != page_block_size:
        raise limits.refuse(op, "block_table, actual_seq_len, page_block_size", "missing or not input's", "all of them")
    each = list(actual_seq_len)
    full = [
        i for i, n in enumerate(each) if n >= compress_block_size and not (n - compress_block_size) % compress_stride
    ]
    if full:
        pages = Pages(op, block_table, each, page_block_size, input.shape[0]).of(full)
        last = torch.tensor([each[i] for i in full])[:, None] - compress_block_size + torch.arange(compress_block_size)
        tokens = input.flatten(0, 1)[pages.slots().gather(1, last)].float()
        sums = torch.einsum("rwnd,wn->rnd", tokens, weight.float())
        cache[slot_mapping[torch.tensor(full)].long()] = sums.to(cache.dtype)
    return cache


def _select(
    query: Tensor, key: Tensor, value: Tensor, slots: Tensor, valid: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention of query tokens [R, H, D] to rows ``slots`` [R, Hk, P] of key and value [tokens, Hk, D].

    Returns the result [R, H, Dv], the largest score and the sum of exponentials [R, H]; a row that sees nothing is 0.
    """
    rows, heads, size = query.shape
    groups = key.shape[1]
    out = query.new_zeros(rows, heads, value.shape[2])
    top, total = torch.zeros(2, rows, heads).unbind()
    head = torch.arange(groups)[:, None]
    for some in torch.arange(rows).split(max(1, _MAX_GATHERED // max(1, slots[0].numel() * size))):
        seen = valid[some, :, None]
        own = query[some].float().view(len(some), groups, -1, size)
        scores = torch.matmul(own, key[slots[some], head].float().transpose(2, 3)).mul_(scale)
        scores.masked_fill_(~seen, -torch.inf)
        most = scores.amax(-1, keepdim=True)
        most.masked_fill_(most == -torch.inf, 0.0)
        weights = scores.sub_(most).exp_()
        sums = weights.sum(-1, keepdim=True)
        mixed = torch.matmul(weights, value[slots[some], head].float()) / sums.masked_fill(sums == 0, 1.0)
        out[some] = mixed.flatten(1, 2).to(query.dtype)
        top[some], total[some] = most.flatten(1), sums.flatten(1)
    return out, top, total


def _positions(indices: Tensor, block: int, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Positions [R, Hk, K * block] of blocks [R, Hk, K], and which are of ``keys`` [R] tokens; others become 0."""
    positions = (indices.long()[..., None] * block + torch.arange(block)).flatten(2)
    valid = (positions >= 0) & (positions < keys[:, None, None])
    return positions.masked_fill_(~valid, 0), valid


@reference(
    "npu::npu_nsa_select_attention",
    source=wheel_doc("npu_nsa_select_attention"),
    grade=Grade.DOCUMENTED,
    note="softmax_max and softmax_sum are [T, N, 8], each value eight times, as of npu_fusion_attention",
)
def npu_nsa_select_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    topk_indices: Tensor,
    scale_value: float,
    head_num: int,
    select_block_size: int,
    select_block_count: int,
    *,
    atten_mask: Tensor | None = None,
    actual_seq_qlen: list[int] | None = None,
    actual_seq_kvlen: list[int] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Packed queries [T, N, D] attend to blocks ``topk_indices`` [T, Nk, count] of their request's keys [T, Nk, D]."""
    op = "npu_nsa_select_attention"
    if query.shape[1] != head_num or topk_indices.shape != (query.shape[0], key.shape[1], select_block_count):
        expected = f"[{query.shape[0]}, {key.shape[1]}, {select_block_count}] for {query.shape[1]} heads"
        raise limits.refuse(op, "topk_indices.shape", list(topk_indices.shape), expected)
    each = lengths.from_sums(op, "actual_seq_qlen", actual_seq_qlen or [], query.shape[0])
    keys = lengths.from_sums(op, "actual_seq_kvlen", actual_seq_kvlen or [], key.shape[0])
    if len(each) != len(keys):
        raise limits.refuse(op, "len(actual_seq_kvlen)", len(keys), f"{len(each)}, as of actual_seq_qlen")
    counts = torch.tensor(each)
    positions, valid = _positions(topk_indices, select_block_size, torch.tensor(keys).repeat_interleave(counts))
    starts = torch.tensor([0, *accumulate(keys[:-1])]).repeat_interleave(counts)
    slots = (positions + starts[:, None, None]).clamp_(max=max(0, key.shape[0] - 1))
    out, top, total = _select(query, key, value, slots, valid, scale_value)
    return out, *(t.unsqueeze(-1).expand(*t.shape, 8).contiguous() for t in (top, total))


@reference(
    "npu::npu_nsa_select_attention_infer",
    source=f"{wheel_doc('npu_nsa_select_attention_infer')}; "
    + cann_doc("ops-transformer", "attention/nsa_selected_attention_infer/README.md"),
    grade=Grade.DOCUMENTED,
    note="one query token a request, as the page in the wheel allows",
)
def npu_nsa_select_attention_infer(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    topk_indices: Tensor,
    scale_value: float,
    head_num: int,
    key_value_head_num: int,
    select_block_size: int,
    select_block_count: int,
    page_block_size: int,
    *,
    layout: str = "BSND",
    atten_mask: Tensor | None = None,
    block_table: Tensor | None = None,
    actual_seq_qlen: list[int] | None = None,
    actual_seq_kvlen: list[int] | None = None,
) -> Tensor:
    """Decode over blocks ``topk_indices`` [B, Nk, count] of pages [blocks, page_block_size, Nk * D] or [.., Nk, D]."""
    op, batch = "npu_nsa_select_attention_infer", query.shape[0]
    if layout not in ("BSH", "BSND", "TND"):
        raise limits.refuse(op, "layout", repr(layout), "'BSH', 'BSND', 'TND'")
    if layout != "TND" and query.shape[1] != 1:
        raise limits.refuse(op, "query.shape[1]", query.shape[1], "1, the tokens of a request")
    if block_table is None or actual_seq_kvlen is None or len(actual_seq_kvlen) != batch:
        raise limits.refuse(
            op, "block_table, actual_seq_kvlen", "missing or of another batch", f"both, of {batch} requests"
        )
    each = list(actual_seq_kvlen)
    pages = Pages(op, block_table, each, page_block_size, key.shape[0])
    positions, valid = _positions(topk_indices, select_block_size, torch.tensor(each))
    slots = pages.slots()
    found = slots.gather(1, positions.flatten(1)).view(positions.shape) if slots.shape[1] else positions
    tokens, keys, values = (
        t.reshape(rows, heads, -1)
        for t, rows, heads in (
            (query, batch, head_num),
            (key, key.shape[0] * page_block_size, key_value_head_num),
            (value, value.shape[0] * page_block_size, key_value_head_num),
        )
    )
    out, _, _ = _select(tokens, keys, values, found, valid, scale_value)
    shape = {"BSH": (batch, 1, -1), "BSND": (batch, 1, head_num, -1), "TND": (batch, head_num, -1)}
    return out.view(shape[layout])
