# SPDX-License-Identifier: Apache-2.0
"""What npu_fused_infer_attention_score refuses; what takes more than an expression of the table.

Numbers, and all other limits, are in ``limits/attention.yaml``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ascend_sim.references import limits
from ascend_sim.references.limits import refuse

if TYPE_CHECKING:
    from ascend_sim.references.attention.fused_infer_call import Call


def check_heads(call: Call) -> None:
    """Head counts: positive, key heads divide query heads, at most 64 to one."""
    allowed = limits.numbers(call.op)
    heads, groups = call.heads, call.key_heads
    if not 0 < heads <= allowed["max_heads"]:
        raise refuse(call.op, call.names["heads"], heads, f"1 to {allowed['max_heads']}")
    if groups <= 0 or heads % groups or heads // groups > allowed["max_group"]:
        raise refuse(
            call.op, "num_key_value_heads", groups, f"divisors of {heads} at least {heads}/{allowed['max_group']}"
        )


def check_tensors(call: Call) -> None:
    """Dimensions, dtypes, contiguity, and that key and value fit each other."""
    layout = call.layout
    dims = len(layout.query)
    for name, tensor in (("query", call.query), ("key", call.key), ("value", call.value)):
        if not tensor.is_contiguous():
            raise refuse(call.op, f"{name}.stride()", tensor.stride(), "contiguous tensors", "Call .contiguous().")
        if (name == "query" or call.block_table is None) and tensor.dim() != dims:
            raise refuse(call.op, f"{name}.dim()", tensor.dim(), f"{dims} for input_layout {call.input_layout}")
    if call.key.dtype != call.value.dtype:
        raise refuse(call.op, "value.dtype", call.value.dtype, f"that of key, {call.key.dtype}")
    if call.key.dtype != call.query.dtype and call.dequantise is None:
        raise refuse(call.op, "key.dtype", call.key.dtype, f"that of query, {call.query.dtype}, without scales")
    head_dim = "NSD" in layout.query or layout.query in ("BSND", "TND", "NTD")
    axis = layout.query.index("N") if head_dim else -1
    if head_dim and call.query.shape[axis] != call.heads:
        raise refuse(call.op, call.names["heads"], call.heads, f"query.shape[{axis}] = {call.query.shape[axis]}")
    if head_dim and call.block_table is None and call.key.shape[axis] != call.key_heads:
        raise refuse(call.op, "num_key_value_heads", call.key_heads, f"key.shape[{axis}] = {call.key.shape[axis]}")


def check_head_size(call: Call, size: int, value_size: int, longest: int) -> None:
    """Head sizes: a short list for packed layouts, multiples of 16 up to 512 otherwise."""
    allowed = limits.numbers(call.op)
    if size > allowed["max_head_size"]:
        raise refuse(call.op, "head size", size, f"at most {allowed['max_head_size']}")
    if call.query_rope is not None:
        return
    if not call.layout.packed:
        if longest > 1 and size % allowed["head_size_multiple"]:
            raise refuse(call.op, "head size", size, f"multiples of {allowed['head_size_multiple']} for many queries")
        return
    grouped = call.heads != call.key_heads and call.inner_precise == 0 and size == value_size
    if [size, value_size] in allowed["head_sizes_tnd"] or (grouped and size <= allowed["max_head_size_tnd_grouped"]):
        return
    raise refuse(
        call.op,
        f"head sizes of query and value in layout {call.input_layout}",
        [size, value_size],
        f"{allowed['head_sizes_tnd']}, and with grouped heads equal sizes up to {allowed['max_head_size_tnd_grouped']}",
        "Pad the head size or use a padded layout.",
    )


def check_packed(call: Call, tokens: int, batch: int) -> None:
    """Packed layouts: list lengths, sparse modes, and features they exclude."""
    allowed = limits.numbers(call.op)
    if batch > allowed["max_batch_tnd"] or tokens > allowed["max_tokens_tnd"]:
        given = f"{batch} requests, {tokens} tokens"
        raise refuse(call.op, "batch", given, f"{allowed['max_batch_tnd']} and {allowed['max_tokens_tnd']}")
    if call.sparse_mode not in (0, 3, 4) or (call.sparse_mode == 0 and call.mask is not None):
        mask = "an atten_mask" if call.mask is not None else "no atten_mask"
        raise refuse(
            call.op, f"sparse_mode in layout {call.input_layout}", f"{call.sparse_mode} with {mask}",
            "0 without atten_mask, 3 and 4 with the compressed one",
        )  # fmt: skip
    if call.bias is not None:
        raise refuse(call.op, "pse_shift", "a tensor", f"None in layout {call.input_layout}")
    half_precision = call.query.dtype == torch.float16 and call.heads == call.key_heads
    if call.inner_precise not in ((0, 1) if half_precision else (0,)):
        raise refuse(call.op, "inner_precise", call.inner_precise, f"0 in layout {call.input_layout}")


def check_block_size(call: Call, size: int, longest: int) -> None:
    """Block sizes of a paged cache, which depend on head size and on whether any request has many queries."""
    allowed: dict[str, Any] = limits.numbers(call.op)
    multiple, most = allowed["block_multiple"], allowed["max_block_decode"]
    if size in (64, 128) or call.query_rope is not None or call.layout.packed:
        most = allowed["max_block_grid"]
    elif longest > 1:
        multiple, most = allowed["block_multiple_prefill"], allowed["max_block_prefill"]
    if call.block_size <= 0 or call.block_size % multiple or call.block_size > most:
        raise refuse(call.op, "block_size", call.block_size, f"multiples of {multiple} up to {most}")
    hidden = call.key.shape[2] if call.key.dim() == 3 else 0
    if hidden > allowed["max_hidden_paged"]:
        raise refuse(call.op, "key.shape[2]", hidden, f"at most {allowed['max_hidden_paged']}")


def check_sink(call: Call, value_size: int) -> None:
    """The learnable sink: packed layouts, one logit per query head."""
    if call.sink is None:
        return
    most = limits.numbers(call.op)["max_sink_value_size"]
    if not call.layout.packed:
        raise refuse(call.op, "learnable_sink", f"given in layout {call.input_layout}", "layouts TND and NTD_TND")
    if tuple(call.sink.shape) != (call.heads,):
        raise refuse(call.op, "learnable_sink.shape", list(call.sink.shape), [call.heads])
    if value_size > most:
        raise refuse(call.op, "value head size with learnable_sink", value_size, f"at most {most}")
