# SPDX-License-Identifier: Apache-2.0
"""npu_fused_infer_attention_score, versions 1 and 2: attention for prefill and decode, padded, packed or paged.

The dispatcher leaves out keyword arguments that have their default value, so kernels take them as a dictionary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention.antiquant import antiquant
from ascend_sim.references.attention.fused_infer_call import Call, fused_infer
from ascend_sim.references.attention.layouts import FUSED_INFER
from ascend_sim.references.attention.masks import UNBOUNDED
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_doc, wheel_meta

_V1 = "npu_fused_infer_attention_score"
_V2 = "npu_fused_infer_attention_score_v2"
_PAGE = cann_doc("ops-transformer", "attention/fused_infer_attention_score/docs/aclnnFusedInferAttentionScoreV4.md")
_NOTE = (
    "query tokens of no request give zeros; a query that sees no key gives zeros and a log-sum-exp of +inf; without "
    "the flag the log-sum-exp is empty, as the Meta kernel says (the page says [1])"
)
_NAMES_V1 = {"heads": "num_heads", "query_lengths": "actual_seq_lengths", "key_lengths": "actual_seq_lengths_kv"}
_NAMES_V2 = {"heads": "num_query_heads", "query_lengths": "actual_seq_qlen", "key_lengths": "actual_seq_kvlen"}
_NOT_SIMULATED_V1 = frozenset(
    [
        "dequant_scale1",
        "quant_scale1",
        "dequant_scale2",
        "quant_scale2",
        "quant_offset2",
        "antiquant_scale",
        "antiquant_offset",
        "query_padding_size",
        "kv_padding_size",
        "key_shared_prefix",
        "value_shared_prefix",
        "actual_shared_prefix_len",
        "key_rope_antiquant_scale",
    ]
)
_NOT_SIMULATED_V2 = frozenset(
    [
        "dequant_scale_query",
        "dequant_scale_key_rope",
        "quant_scale_out",
        "quant_offset_out",
        "quant_scale_p",
        "query_dtype",
        "key_dtype",
        "value_dtype",
        "query_rope_dtype",
        "key_rope_dtype",
        "key_shared_prefix_dtype",
        "value_shared_prefix_dtype",
        "dequant_scale_query_dtype",
        "dequant_scale_key_dtype",
        "dequant_scale_value_dtype",
        "dequant_scale_key_rope_dtype",
        "out_dtype",
    ]
)


def _refuse_unsimulated(op: str, names: frozenset[str], given: dict[str, Any]) -> None:
    for name in names.intersection(given):
        if given[name] is not None:
            raise limits.not_simulated(op, name, "given")


def _call_v1(query: Tensor, key: Tensor, value: Tensor, given: dict[str, Any]) -> Call:
    get = given.get
    _refuse_unsimulated(_V1, _NOT_SIMULATED_V1, given)
    return Call(
        op=_V1,
        names=_NAMES_V1,
        query=query,
        key=key,
        value=value,
        heads=get("num_heads", 1),
        key_heads=get("num_key_value_heads", 0),
        scale=get("scale", 1.0),
        input_layout=get("input_layout", "BSH"),
        query_lengths=get("actual_seq_lengths"),
        key_lengths=get("actual_seq_lengths_kv"),
        mask=get("atten_mask"),
        sparse_mode=get("sparse_mode", 0),
        before=get("pre_tokens", UNBOUNDED),
        after=get("next_tokens", UNBOUNDED),
        block_table=get("block_table"),
        block_size=get("block_size", 0),
        bias=get("pse_shift"),
        query_rope=get("query_rope"),
        key_rope=get("key_rope"),
        sink=None,
        inner_precise=get("inner_precise", 0),
        want_lse=get("softmax_lse_flag", False),
        dequantise=antiquant(
            _V1,
            key.dtype,
            (get("key_antiquant_mode", 0), get("value_antiquant_mode", 0)),
            (get("key_antiquant_scale"), get("value_antiquant_scale")),
            (get("key_antiquant_offset"), get("value_antiquant_offset")),
        ),
    )


def _call_v2(query: Tensor, key: Tensor, value: Tensor, given: dict[str, Any]) -> Call:
    get = given.get
    _refuse_unsimulated(_V2, _NOT_SIMULATED_V2, given)
    return Call(
        op=_V2,
        names=_NAMES_V2,
        query=query,
        key=key,
        value=value,
        heads=get("num_query_heads", 1),
        key_heads=get("num_key_value_heads", 0),
        scale=get("softmax_scale", 1.0),
        input_layout=get("input_layout", "BSH"),
        query_lengths=get("actual_seq_qlen"),
        key_lengths=get("actual_seq_kvlen"),
        mask=get("atten_mask"),
        sparse_mode=get("sparse_mode", 0),
        before=get("pre_tokens", UNBOUNDED),
        after=get("next_tokens", UNBOUNDED),
        block_table=get("block_table"),
        block_size=get("block_size", 0),
        bias=get("pse_shift"),
        query_rope=get("query_rope"),
        key_rope=get("key_rope"),
        sink=get("learnable_sink"),
        inner_precise=get("inner_precise", 0),
        want_lse=get("return_softmax_lse", False),
        dequantise=antiquant(
            _V2,
            key.dtype,
            (get("key_quant_mode", 0), get("value_quant_mode", 0)),
            (get("dequant_scale_key"), get("dequant_scale_value")),
            (get("dequant_offset_key"), get("dequant_offset_value")),
        ),
    )


def _write(op: str, results: tuple[Tensor, Tensor], out: list[Tensor], want_lse: bool) -> tuple[Tensor, Tensor]:
    """Copy results into ``out`` = [attention_out, softmax_lse]."""
    if out[0].shape != results[0].shape:
        raise limits.refuse(op, "out[0].shape", list(out[0].shape), list(results[0].shape))
    out[0].copy_(results[0])
    if want_lse:
        out[1].copy_(results[1])
    return out[0], out[1]


@reference(f"npu::{_V1}", source=f"{wheel_doc(_V1)}; {_PAGE}", grade=Grade.DOCUMENTED, note=_NOTE)
def npu_fused_infer_attention_score(query: Tensor, key: Tensor, value: Tensor, **given: Any) -> tuple[Tensor, Tensor]:
    """See the operator's page; returns the result and the log-sum-exp."""
    return fused_infer(_call_v1(query, key, value, given))


@reference(f"npu::{_V1}.out", source=f"{wheel_doc(_V1 + '.out')}; {_PAGE}", grade=Grade.DOCUMENTED, note=_NOTE)
def npu_fused_infer_attention_score_out(
    query: Tensor, key: Tensor, value: Tensor, *, out: list[Tensor], workspace: Tensor | None = None, **given: Any
) -> tuple[Tensor, Tensor]:
    """Version 1 into ``out``; the workspace is not used."""
    call = _call_v1(query, key, value, given)
    return _write(_V1, fused_infer(call), out, call.want_lse)


@reference(f"npu::{_V2}", source=f"{wheel_doc(_V2)}; {_PAGE}", grade=Grade.DOCUMENTED, note=_NOTE)
def npu_fused_infer_attention_score_v2(
    query: Tensor, key: Tensor, value: Tensor, **given: Any
) -> tuple[Tensor, Tensor]:
    """See the operator's page; returns the result and the log-sum-exp."""
    return fused_infer(_call_v2(query, key, value, given))


@reference(f"npu::{_V2}.out", source=f"{wheel_doc(_V2 + '.out')}; {_PAGE}", grade=Grade.DOCUMENTED, note=_NOTE)
def npu_fused_infer_attention_score_v2_out(
    query: Tensor, key: Tensor, value: Tensor, *, out: list[Tensor], workspace: Tensor | None = None, **given: Any
) -> tuple[Tensor, Tensor]:
    """Version 2 into ``out``; the workspace is not used."""
    call = _call_v2(query, key, value, given)
    return _write(_V2, fused_infer(call), out, call.want_lse)


@reference(
    f"npu::_{_V1}_get_max_workspace",
    f"npu::_{_V2}_get_max_workspace",
    source=wheel_doc(f"_{_V1}_get_max_workspace"),
    grade=Grade.GUESSED,
    note="the simulation needs no workspace; the size is arbitrary",
)
def npu_fused_infer_attention_score_get_max_workspace(
    query: Tensor, key: Tensor, value: Tensor, **given: Any
) -> Tensor:
    """A one-dimensional tensor of query's dtype."""
    return query.new_empty(16)


def _output_shape(layout: str, query: Tensor, heads: int, value_size: int) -> list[int]:
    """Shape of the result for a query in ``layout``."""
    pair = FUSED_INFER[layout]
    sizes = dict(zip(pair.query, query.shape, strict=True))
    sizes.setdefault("N", heads)
    sizes |= {"D": value_size, "H": heads * value_size}
    return [sizes[letter] for letter in pair.output]


@reference(
    f"npu::_{_V1}_infer_output",
    f"npu::_{_V2}_infer_output",
    source=f"{wheel_doc(f'_{_V1}_infer_output')}; shapes: {wheel_meta(_V1)}",
    grade=Grade.DOCUMENTED,
)
def npu_fused_infer_attention_score_infer_output(query: Tensor, value: Tensor, **given: Any) -> tuple[Tensor, Tensor]:
    """Empty tensors of the shapes of the result and the log-sum-exp."""
    layout = given.get("input_layout", "BSH")
    heads = given.get("num_heads", given.get("num_query_heads", 1))
    key_heads = given.get("num_key_value_heads", 0) or heads
    size = (
        value.shape[-1] // key_heads if value.dim() == 3 and (layout[:3] == "BSH" or _paged(given)) else value.shape[-1]
    )
    if value.dim() == 5:
        size = value.shape[2] * value.shape[4]
    out = query.new_empty(_output_shape(layout, query, heads, size))
    if not given.get("softmax_lse_flag", given.get("return_softmax_lse", False)):
        return out, query.new_empty(0, dtype=torch.float32)
    sizes = dict(zip(FUSED_INFER[layout].query, query.shape, strict=True)) | {"N": heads}
    shape = [sizes["T"], heads, 1] if FUSED_INFER[layout].packed else [sizes["B"], heads, sizes["S"], 1]
    return out, query.new_empty(shape, dtype=torch.float32)


def _paged(given: dict[str, Any]) -> bool:
    return given.get("block_table") is not None
