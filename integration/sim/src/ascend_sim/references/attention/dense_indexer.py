# SPDX-License-Identifier: Apache-2.0
"""Softmax statistics of a lightning indexer's scores over all keys, which its training needs."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention.spans import causal_limits, check_sparse_mode, key_spans, query_spans, rows
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test

_UNBOUNDED = (1 << 63) - 1


@reference(
    "npu::npu_dense_lightning_indexer_softmax_lse",
    source=op_plugin_test("test_npu_dense_lightning_indexer_softmax_lse"),
    grade=Grade.GOLDEN,
)
def npu_dense_lightning_indexer_softmax_lse(
    query_index: Tensor,
    key_index: Tensor,
    weights: Tensor,
    *,
    actual_seq_qlen: list[int] | None = None,
    actual_seq_klen: list[int] | None = None,
    layout: str | None = "BSND",
    sparse_mode: int | None = 3,
    pre_tokens: int | None = _UNBOUNDED,
    next_tokens: int | None = _UNBOUNDED,
) -> tuple[Tensor, Tensor]:
    """(maximum, sum of exponentials) of ``sum_h w_h relu(q_h . k)`` over the keys each query sees, float32.

    Shapes: query [B, S, N, D] or packed [T, N, D], weights without D, key [B, S, 1, D] or [T, 1, D]; results [B, 1, S]
    or [1, T].
    """
    op, form, mode = (
        "npu_dense_lightning_indexer_softmax_lse",
        layout or "BSND",
        3 if sparse_mode is None else sparse_mode,
    )
    check_sparse_mode(op, mode, *(_UNBOUNDED if n is None else n for n in (pre_tokens, next_tokens)))
    if key_index.shape[-2] != 1:
        raise limits.refuse(op, "key heads", key_index.shape[-2], 1)
    sums = [None if given is None else torch.tensor(given) for given in (actual_seq_qlen, actual_seq_klen)]
    queries = query_spans(op, form, query_index, sums[0])
    keys = key_spans(op, form, key_index, sums[1], None, len(queries.lengths), "actual_seq_klen")
    q, k, w = (rows(t, form) for t in (query_index.float(), key_index[..., 0, :].float(), weights.float()))
    top, total = torch.full((2, q.shape[0]), -torch.inf).unbind()
    for length, members in queries.equal():
        lines, slots = queries.slots(members), keys.slots(members)
        seen = causal_limits(length, torch.tensor([keys.lengths[i] for i in members]), mode)
        products = torch.matmul(q[lines].flatten(1, 2), k[slots].transpose(1, 2)).relu_()
        scores = torch.matmul(w[lines].unsqueeze(2), products.unflatten(1, (*lines.shape[1:], -1))).squeeze(2)
        scores.masked_fill_(torch.arange(scores.shape[-1]) >= seen[..., None], -torch.inf)
        most = scores.amax(-1)
        top[lines], total[lines] = most, (scores - most[..., None]).exp_().sum(-1)
    if form == "TND":
        return top[None], total[None]
    shape = (query_index.shape[0], 1, query_index.shape[1])
    return top.view(shape), total.view(shape)
