# SPDX-License-Identifier: Apache-2.0
"""npu_fused_infer_attention_score, versions 1 and 2: attention for prefill and decode, padded, packed or paged.

The dispatcher leaves out keyword arguments that have their default value, so kernels take them as a dictionary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention.antiquant import Antiquant, antiquant
from ascend_sim.references.attention.fused_infer_call import Call, fused_infer
from ascend_sim.references.attention.masks import UNBOUNDED
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_doc

_V1 = "npu_fused_infer_attention_score"
_V2 = "npu_fused_infer_attention_score_v2"
_PAGE = cann_doc("ops-transformer", "attention/fused_infer_attention_score/docs/aclnnFusedInferAttentionScoreV4.md")
_NOTE = (
    "query tokens of no request give zeros; a query that sees no key gives zeros and a log-sum-exp of +inf; without "
    "the flag the log-sum-exp is empty, as the Meta kernel says (the page says [1])"
)
_FIELDS: dict[str, tuple[str, str, Any]] = {
    "heads": ("num_heads", "num_query_heads", 1),
    "key_heads": ("num_key_value_heads", "num_key_value_heads", 0),
    "scale": ("scale", "softmax_scale", 1.0),
    "input_layout": ("input_layout", "input_layout", "BSH"),
    "query_lengths": ("actual_seq_lengths", "actual_seq_qlen", None),
    "key_lengths": ("actual_seq_lengths_kv", "actual_seq_kvlen", None),
    "mask": ("atten_mask", "atten_mask", None),
    "sparse_mode": ("sparse_mode", "sparse_mode", 0),
    "before": ("pre_tokens", "pre_tokens", UNBOUNDED),
    "after": ("next_tokens", "next_tokens", UNBOUNDED),
    "block_table": ("block_table", "block_table", None),
    "block_size": ("block_size", "block_size", 0),
    "bias": ("pse_shift", "pse_shift", None),
    "query_rope": ("query_rope", "query_rope", None),
    "key_rope": ("key_rope", "key_rope", None),
    "sink": ("", "learnable_sink", None),
    "inner_precise": ("inner_precise", "inner_precise", 0),
    "want_lse": ("softmax_lse_flag", "return_softmax_lse", False),
    "query_scale": ("", "dequant_scale_query", None),
    "out_scale": ("quant_scale2", "quant_scale_out", None),
    "out_offset": ("quant_offset2", "quant_offset_out", None),
}
"""Fields of :class:`Call`: the argument's name in version 1 and in version 2, and its default value."""
_NAMES = tuple({field: names[version] for field, names in _FIELDS.items()} for version in (0, 1))
_ANTIQUANT = (
    (
        ("key_antiquant_mode", "value_antiquant_mode"),
        ("key_antiquant_scale", "value_antiquant_scale"),
        ("key_antiquant_offset", "value_antiquant_offset"),
    ),
    (
        ("key_quant_mode", "value_quant_mode"),
        ("dequant_scale_key", "dequant_scale_value"),
        ("dequant_offset_key", "dequant_offset_value"),
    ),
)
"""Names of the modes, scales and offsets of stored (key, value) in version 1 and in version 2."""
_NOT_SIMULATED = frozenset(
    [
        "dequant_scale1",
        "quant_scale1",
        "dequant_scale2",
        "query_padding_size",
        "kv_padding_size",
        "key_shared_prefix",
        "value_shared_prefix",
        "actual_shared_prefix_len",
        "key_rope_antiquant_scale",
        "dequant_scale_key_rope",
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
"""Arguments of either version that must not be given."""


def _antiquant(op: str, version: int, stored: torch.dtype, given: dict[str, Any]) -> Antiquant | None:
    """How int8 keys and values are restored; version 1 may give the scales of both as one tensor."""
    modes, scales, offsets = ((given.get(key), given.get(value)) for key, value in _ANTIQUANT[version])
    mode = given.get("antiquant_mode", 0)
    if given.get("antiquant_scale") is not None:
        key_scale, value_scale = given["antiquant_scale"]
        offset = given.get("antiquant_offset")
        key_offset, value_offset = (None, None) if offset is None else offset
        return antiquant(op, stored, (mode, mode), (key_scale, value_scale), (key_offset, value_offset))
    return antiquant(op, stored, (modes[0] or 0, modes[1] or 0), scales, offsets)


def _call(version: int, query: Tensor, key: Tensor, value: Tensor, given: dict[str, Any]) -> Call:
    op = (_V1, _V2)[version]
    for name in _NOT_SIMULATED.intersection(given):
        if given[name] is not None:
            raise limits.not_simulated(op, name, "given")
    fields = {field: given.get(names[version], names[2]) for field, names in _FIELDS.items()}
    restore = _antiquant(op, version, key.dtype, given)
    return Call(op=op, names=_NAMES[version], query=query, key=key, value=value, dequantise=restore, **fields)


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
    return fused_infer(_call(0, query, key, value, given))


@reference(f"npu::{_V1}.out", source=f"{wheel_doc(_V1 + '.out')}; {_PAGE}", grade=Grade.DOCUMENTED, note=_NOTE)
def npu_fused_infer_attention_score_out(
    query: Tensor, key: Tensor, value: Tensor, *, out: list[Tensor], workspace: Tensor | None = None, **given: Any
) -> tuple[Tensor, Tensor]:
    """Version 1 into ``out``; the workspace is not used."""
    call = _call(0, query, key, value, given)
    return _write(_V1, fused_infer(call), out, call.want_lse)


@reference(f"npu::{_V2}", source=f"{wheel_doc(_V2)}; {_PAGE}", grade=Grade.DOCUMENTED, note=_NOTE)
def npu_fused_infer_attention_score_v2(
    query: Tensor, key: Tensor, value: Tensor, **given: Any
) -> tuple[Tensor, Tensor]:
    """See the operator's page; returns the result and the log-sum-exp."""
    return fused_infer(_call(1, query, key, value, given))


@reference(f"npu::{_V2}.out", source=f"{wheel_doc(_V2 + '.out')}; {_PAGE}", grade=Grade.DOCUMENTED, note=_NOTE)
def npu_fused_infer_attention_score_v2_out(
    query: Tensor, key: Tensor, value: Tensor, *, out: list[Tensor], workspace: Tensor | None = None, **given: Any
) -> tuple[Tensor, Tensor]:
    """Version 2 into ``out``; the workspace is not used."""
    call = _call(1, query, key, value, given)
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
