# SPDX-License-Identifier: Apache-2.0
"""Quantised queries and results of npu_fused_infer_attention_score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ascend_sim.references.limits import refuse

if TYPE_CHECKING:
    from ascend_sim.references.attention.fused_infer_call import Call


def check(call: Call) -> None:
    """What int8 queries and int8 results need and exclude."""
    if call.out_offset is not None and call.out_scale is None:
        raise refuse(call.op, call.names["out_offset"], "a tensor", f"None without {call.names['out_scale']}")
    if (call.query.dtype == torch.int8) != (call.query_scale is not None):
        scale = call.names["query_scale"] or "version 2 and its dequant_scale_query"
        raise refuse(call.op, "query.dtype", call.query.dtype, f"int8 with {scale} and only then")
    if call.query_scale is None:
        return
    if call.key_rope is None or call.block_table is None or call.dequantise is None:
        given = "without key_rope, block_table or scales of key and value"
        raise refuse(call.op, "query.dtype", f"int8 {given}", "int8 with all of them")
    for scales in (call.dequantise.key, call.dequantise.value):
        if scales.scale.numel() != 1 or scales.offset is not None:
            raise refuse(
                call.op, "scales of key and value", "several, or an offset", "one each with dequant_scale_query"
            )
    if call.out_scale is not None:
        raise refuse(call.op, call.names["out_scale"], "a tensor", "None with dequant_scale_query")
    heads = call.query.numel() // call.query.shape[-1] if call.layout.query != "BSH" else 0
    tokens = heads or call.query.shape[0] * call.query.shape[1] * call.heads
    if call.query_scale.numel() != tokens:
        raise refuse(
            call.op, "dequant_scale_query.numel()", call.query_scale.numel(), f"{tokens}, one per token and head"
        )


def restored_query(call: Call, query: Tensor) -> Tensor:
    """Query tokens [.., H, D] in floating point; scales are laid out as the query is, without its last dimension."""
    if call.query_scale is None:
        return query
    scale = call.query_scale
    if call.layout.query == "BNSD":
        scale = scale.view(call.query.shape[:3]).transpose(1, 2)
    elif call.layout.query == "NTD":
        scale = scale.view(call.query.shape[:2]).transpose(0, 1)
    return query.float() * scale.reshape(*query.shape[:-1], 1)


def restored_cache(call: Call, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens of an int8 cache, which has one scale, in floating point; others as they are."""
    if call.query_scale is None or call.dequantise is None:
        return key, value
    return key.float() * call.dequantise.key.scale, value.float() * call.dequantise.value.scale


def result(call: Call, out: Tensor) -> Tensor:
    """The result [.., H, D] in the dtype it is returned in: ``round(out * scale + offset)`` if that is int8."""
    if call.query_scale is not None and call.query_rope is not None:
        return out.to(call.query_rope.dtype)
    if call.out_scale is None:
        return out
    scale = call.out_scale.float().reshape(-1)
    offset = torch.zeros(1) if call.out_offset is None else call.out_offset.float().reshape(-1)
    if scale.numel() > 1:
        scale, offset = (t.view(-1, out.shape[-1]) if t.numel() > 1 else t for t in (scale, offset))
    return torch.round(out.float() * scale + offset).clamp_(-128, 127).to(torch.int8)
