# SPDX-License-Identifier: Apache-2.0
"""npu_block_sparse_attention: each head's queries see, block by block, the blocks of keys that a mask selects."""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention.core import attend
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test, wheel_doc
from ascend_sim.references.undefined import undefined

_OP = "npu_block_sparse_attention"


def _rows(layout: str, lengths: list[int] | None, tensor: Tensor, batch: int, name: str) -> list[slice]:
    """The tokens of each request along the tensor's first (packed) or third dimension."""
    if layout == "BNSD":
        return [slice(0, n) for n in (lengths or [tensor.shape[2]] * batch)]
    if lengths is None or len(lengths) != batch or sum(lengths) != tensor.shape[0]:
        raise limits.refuse(_OP, name, lengths, f"{batch} lengths of {tensor.shape[0]} tokens in layout TND")
    starts = [0, *accumulate(lengths)]
    return [slice(starts[i], starts[i + 1]) for i in range(batch)]


@reference(
    f"npu::{_OP}",
    source=f"{op_plugin_test('test_npu_block_sparse_attention')}; {wheel_doc(_OP)}",
    grade=Grade.GOLDEN,
    note="query head h uses key head h / (N / Nk); the golden is for Nk = N and 1; a query that sees no block gives 0",
)
def npu_block_sparse_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    block_sparse_mask: Tensor,
    block_shape: list[int],
    *,
    q_input_layout: str = "TND",
    kv_input_layout: str = "TND",
    num_key_value_heads: int = 1,
    scale_value: float = 0.0,
    inner_precise: int = 1,
    actual_seq_lengths: list[int] | None = None,
    actual_seq_lengths_kv: list[int] | None = None,
    softmax_lse_flag: int | None = 0,
) -> tuple[Tensor, Tensor]:
    """Return the result like query and the log-sum-exp float32 with 1 in place of D, undefined without the flag.

    ``block_sparse_mask`` [B, N, blocks of queries, blocks of keys] is not 0 where a block is seen; ``block_shape`` are
    the tokens of a block of each.
    """
    _check(query, block_shape, (q_input_layout, kv_input_layout), inner_precise)
    if (actual_seq_lengths is None) != (actual_seq_lengths_kv is None):
        raise limits.refuse(_OP, "actual_seq_lengths, actual_seq_lengths_kv", "one of them", "both or neither")
    batch, layout = block_sparse_mask.shape[0], q_input_layout
    seen = block_sparse_mask != 0
    query_rows = _rows(layout, actual_seq_lengths, query, batch, "actual_seq_lengths")
    key_rows = _rows(layout, actual_seq_lengths_kv, key, batch, "actual_seq_lengths_kv")
    out = torch.zeros_like(query)
    lse = undefined((*query.shape[:-1], 1), torch.float32)
    for request, (tokens, keys) in enumerate(zip(query_rows, key_rows, strict=True)):
        part, sums = _attend_one(
            request, tokens, keys, (query, key, value), seen[request], block_shape, scale_value, layout
        )
        if layout == "BNSD":
            out[request, :, tokens], rows = part.transpose(0, 1), sums
            target = lse[request, :, tokens]
        else:
            out[tokens], rows = part, sums.T
            target = lse[tokens]
        if softmax_lse_flag:
            target.copy_(rows.unsqueeze(-1))
    return out, lse


def _check(query: Tensor, block_shape: list[int], layouts: tuple[str, str], inner_precise: int) -> None:
    if layouts[0] != layouts[1] or layouts[0] not in ("TND", "BNSD"):
        raise limits.refuse(_OP, "layouts", layouts, "'TND' or 'BNSD' for both")
    if len(block_shape) < 2 or min(block_shape[:2]) <= 0 or block_shape[1] % 128:
        raise limits.refuse(_OP, "block_shape", list(block_shape), "two sizes, the second a multiple of 128")
    if inner_precise not in ((0,) if query.dtype == torch.bfloat16 else (0, 1)):
        raise limits.refuse(_OP, "inner_precise", inner_precise, "0, or for float16 1")
    if query.shape[-1] not in (64, 128):
        raise limits.refuse(_OP, "query.shape[-1]", query.shape[-1], "64, 128")


def _attend_one(
    request: int,
    tokens: slice,
    keys: slice,
    tensors: tuple[Tensor, Tensor, Tensor],
    seen: Tensor,
    block_shape: list[int],
    scale: float,
    layout: str,
) -> tuple[Tensor, Tensor]:
    """[S, N, D] and [N, S] of one request."""
    if layout == "BNSD":
        query, key, value = (
            t[request, :, r].transpose(0, 1) for t, r in zip(tensors, (tokens, keys, keys), strict=True)
        )
    else:
        query, key, value = (t[r] for t, r in zip(tensors, (tokens, keys, keys), strict=True))
    down = torch.arange(query.shape[0]) // block_shape[0]
    across = torch.arange(key.shape[0]) // block_shape[1]
    hidden = ~seen[:, down][:, :, across]
    bias = torch.zeros(hidden.shape).masked_fill_(hidden, -torch.inf)
    out, lse = attend(query[None], key[None], value[None], scale, bias=bias[None])
    return out[0], lse[0]
