# SPDX-License-Identifier: Apache-2.0
"""Paged attention of the Ascend Transformer Boost library with int8 queries, keys, values and weights."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention import atb_requests as forms
from ascend_sim.references.attention.paging import Pages, take
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test

_ONLINE = 3
"""The quantisation in which weights are quantised by their row's maximum."""
_RESULTS = {1: torch.float16, 27: torch.bfloat16}
"""Dtypes of the result by ACL's numbers."""


@reference(
    "atb::_npu_paged_attention_quant",
    source=op_plugin_test("test_atb_paged_attention_quant"),
    grade=Grade.GOLDEN,
    note="quant_type 3; the device quantises weights by tiles of keys, the golden and this by rows",
)
def _npu_paged_attention_quant(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    num_kv_heads: int,
    num_heads: int,
    scale_value: float,
    block_table: Tensor,
    context_lens: Tensor,
    quant_type: int,
    outdata_type: int,
    k_descale: Tensor,
    v_descale: Tensor,
    out: Tensor,
) -> None:
    """Decode one token a request: int8 query [B, H, D], caches in either layout, scales [H], into ``out``.

    Weights ``exp(score - maximum)`` round to int8 in steps of 1 / 127.
    """
    op, each = "_npu_paged_attention_quant", context_lens.tolist()
    if quant_type != _ONLINE:
        raise limits.not_simulated(op, "quant_type", quant_type)
    if _RESULTS.get(outdata_type) != out.dtype:
        raise limits.refuse(op, "outdata_type", outdata_type, f"1 (float16), 27 (bfloat16), as out is {out.dtype}")
    if len(each) != query.shape[0]:
        raise limits.refuse(op, "len(context_lens)", len(each), f"{query.shape[0]}, one per query token")
    if not each or not max(each):
        out.zero_()
        return
    names = ("key_cache", "value_cache")
    caches = [forms.cache_view(op, n, c, num_kv_heads) for n, c in zip(names, (key_cache, value_cache), strict=True)]
    slots = Pages(op, block_table, each, caches[0].shape[1], caches[0].shape[0]).slots()
    key, value = (take(c, slots).float() for c in caches)
    groups = query.float().view(len(each), num_kv_heads, num_heads // num_kv_heads, -1)
    scores = torch.matmul(groups, key.permute(0, 2, 3, 1))  # sums of products of int8, exact in float32
    scores.mul_(k_descale.float().view(num_kv_heads, -1, 1)).mul_(scale_value)
    hidden = torch.arange(slots.shape[1]) >= torch.tensor(each)[:, None]
    scores.masked_fill_(hidden[:, None, None], -torch.inf)
    weights = scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    steps = weights.div(1 / 127).half().float().round_()
    mixed = torch.matmul(steps, value.transpose(1, 2))
    mixed.mul_(v_descale.float().view(num_kv_heads, -1, 1)).div_(127).div_(weights.sum(-1, keepdim=True))
    out.copy_(mixed.reshape(out.shape))
