# SPDX-License-Identifier: Apache-2.0
"""Block-sparse attention and a dense indexer's statistics against the goldens of the vendor's tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from .calls import call
from .fia_cases import Batch, stack
from .oracle import as_float64, assert_close

BLOCK_SPARSE = "npu::npu_block_sparse_attention"
DENSE = "npu::npu_dense_lightning_indexer_softmax_lse"


def expected(batch: Batch, mask: torch.Tensor, block: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    bias = []
    for request, (queries, keys) in enumerate(zip(batch.queries, batch.keys, strict=True)):
        seen = mask[request].numpy()[:, np.arange(queries) // block[0]][:, :, np.arange(keys) // block[1]] != 0
        bias.append(np.where(seen, 0.0, -1e30))
    return batch.expected(bias=bias)


@pytest.mark.parametrize("heads", [(4, 4), (4, 1), (4, 2)], ids=str)
@pytest.mark.parametrize("layout", ["BNSD", "TND"])
def test_block_sparse_attention(layout: str, heads: tuple[int, int]) -> None:
    """Each block of queries sees one or two of three blocks of keys, differently for each head."""
    batch = Batch([40, 40], [300, 300], heads=heads)
    block = [16, 128]
    mask = torch.zeros(2, 4, 3, 3, dtype=torch.int8)
    for head in range(4):
        for i in range(3):
            mask[:, head, i, (i + head) % 3] = 1
    mask[1, :, :, 0] = 1
    tensors = batch.padded("BNSD")[0] if layout == "BNSD" else batch.packed()[0]
    given: dict[str, Any] = {"q_input_layout": layout, "kv_input_layout": layout, "num_key_value_heads": heads[1]}
    lengths: dict[str, Any] = {"actual_seq_lengths": batch.queries, "actual_seq_lengths_kv": batch.keys}
    out, lse = call(
        BLOCK_SPARSE, **tensors, block_sparse_mask=mask, block_shape=block, scale_value=batch.scale, **given, **lengths,
        softmax_lse_flag=1,
    )  # fmt: skip
    wanted = expected(batch, mask, block)
    rows = 40 if layout == "BNSD" else None
    result, sums = stack([o for o, _ in wanted], rows), stack([s for _, s in wanted], rows)
    if layout == "BNSD":
        result, sums = result.transpose(0, 2, 1, 3), sums.transpose(0, 2, 1)
    assert_close(out, result)
    assert_close(lse[..., 0], sums)


def test_block_sparse_attention_of_packed_requests_of_other_lengths() -> None:
    batch = Batch([40, 3], [130, 7], dtype=torch.bfloat16)
    mask = torch.ones(2, 4, 3, 2, dtype=torch.int8)
    mask[0, :, 1, 0] = 0
    out, lse = call(
        BLOCK_SPARSE, **batch.packed()[0], block_sparse_mask=mask, block_shape=[16, 128], scale_value=batch.scale,
        num_key_value_heads=2, inner_precise=0, actual_seq_lengths=batch.queries, actual_seq_lengths_kv=batch.keys,
    )  # fmt: skip
    assert_close(out, stack([o for o, _ in expected(batch, mask, [16, 128])]))
    assert lse.isnan().all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"block_shape": [16, 64]}, "multiple of 128"),
        ({"kv_input_layout": "BNSD"}, "for both"),
        ({"actual_seq_lengths_kv": None}, "both or neither"),
        ({"inner_precise": 2}, "inner_precise is 2"),
    ],
)
def test_block_sparse_attention_refuses(given: dict[str, object], message: str) -> None:
    x = torch.ones(4, 4, 64).half()
    arguments = {
        "block_shape": [16, 128], "actual_seq_lengths": [4], "actual_seq_lengths_kv": [4], "num_key_value_heads": 4,
    } | given  # fmt: skip
    with pytest.raises(RuntimeError, match=message):
        torch.ops.npu.npu_block_sparse_attention(x, x, x, torch.ones(1, 4, 1, 1, dtype=torch.int8), **arguments)


@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("layout", ["BSND", "TND"])
def test_dense_lightning_indexer_softmax_lse(layout: str, mode: int) -> None:
    queries, keys = ([4, 4], [9, 9]) if layout == "BSND" else ([4, 3], [9, 5])
    batch = Batch(queries, keys, heads=(8, 1), size=(128, 128), dtype=torch.bfloat16)
    weights = [torch.randn(n, 8).bfloat16() for n in queries]
    gather = torch.stack if layout == "BSND" else torch.cat
    given = {}
    if layout == "TND":
        given = {"actual_seq_qlen": np.cumsum(queries).tolist(), "actual_seq_klen": np.cumsum(keys).tolist()}
    found = call(
        DENSE, gather(batch.query), gather(batch.key), gather(weights), layout=layout, sparse_mode=mode, **given
    )
    tops, totals = [], []
    for query, key, weight in zip(batch.query, batch.key, weights, strict=True):
        products = np.maximum(np.einsum("snd,kd->snk", as_float64(query), as_float64(key)[:, 0]), 0)
        scores = np.einsum("snk,sn->sk", products, as_float64(weight))
        if mode == 3:
            hidden = np.arange(key.shape[0])[None] > np.arange(query.shape[0])[:, None] + key.shape[0] - query.shape[0]
            scores = np.where(hidden, -np.inf, scores)
        tops.append(scores.max(-1))
        totals.append(np.exp(scores - scores.max(-1, keepdims=True)).sum(-1))
    for tensor, parts in zip(found, (tops, totals), strict=True):
        wanted = np.stack(parts)[:, None] if layout == "BSND" else np.concatenate(parts)[None]
        assert tensor.dtype == torch.float32
        assert_close(tensor / 100, wanted / 100, 1e-3)
