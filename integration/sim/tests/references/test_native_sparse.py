# SPDX-License-Identifier: Apache-2.0
"""Native sparse attention against the formulas of the vendor's pages, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from .calls import call
from .fia_cases import Batch, stack
from .oracle import as_float64, assert_close, attention


def test_compress() -> None:
    """Window i of a request is its tokens from i * stride on, times the weight of each place, added up."""
    each, size, stride = [70, 20, 32], 32, 16
    tokens, weight = torch.randn(sum(each), 4, 16).half(), torch.randn(size, 4).half() / 8
    out = call("npu::npu_nsa_compress", tokens, weight, size, stride, actual_seq_len=np.cumsum(each).tolist())
    expected, start = [], 0
    for length in each:
        part = as_float64(tokens[start : start + length])
        for first in range(0, length - size + 1, stride):
            expected.append((part[first : first + size] * as_float64(weight)[..., None]).sum(0))
        start += length
    assert len(expected) == 4
    assert_close(out, np.array(expected), 4e-3)


def test_compress_infer_writes_windows_that_filled_up() -> None:
    """Lengths 43 and 20 fill no window of 32 every 16; 48 and 32 do."""
    lengths, size, stride, page = [43, 48, 20, 32], 32, 16, 64
    pages, weight = torch.randn(5, page, 2, 16).bfloat16(), torch.randn(size, 2).bfloat16() / 8
    table = torch.tensor([[4], [1], [0], [3]], dtype=torch.int32)
    slots = torch.tensor([6, 2, 5, 0], dtype=torch.int32)
    cache = torch.zeros(8, 2, 16).bfloat16()
    call(
        "npu::npu_nsa_compress_infer.cache", pages, weight, slots, size, stride, page, block_table=table,
        actual_seq_len=lengths, cache=cache,
    )  # fmt: skip
    expected = np.zeros((8, 2, 16))
    for request in (1, 3):
        tokens = as_float64(pages[table[request, 0], lengths[request] - size : lengths[request]])
        expected[slots[request]] = (tokens * as_float64(weight)[..., None]).sum(0)
    assert_close(cache, expected, 2e-2)


def selected(batch: Batch, indices: torch.Tensor, block: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Result and log-sum-exp of each request; ``indices`` [tokens, Nk, count] of all of them."""
    results, row = [], 0
    for query, key, value in zip(batch.query, batch.key, batch.value, strict=True):
        rows = []
        for token in query:
            bias = np.full((batch.heads[0], 1, key.shape[0]), -1e30)
            for head in range(batch.heads[0]):
                group = head * batch.heads[1] // batch.heads[0]
                for chosen in indices[row, group].tolist():
                    bias[head, 0, chosen * block : (chosen + 1) * block] = 0
            parts = as_float64(token[None]), as_float64(key), as_float64(value)
            rows.append(attention(parts[0], parts[1], parts[2], batch.scale, bias=bias))
            row += 1
        results.append((np.concatenate([o for o, _ in rows]), np.concatenate([s for _, s in rows])))
    return results


def test_select_attention() -> None:
    batch = Batch([5, 3], [300, 256], heads=(8, 2), size=(192, 128))
    indices = torch.stack([torch.randperm(4)[:3] for _ in range(16)]).view(8, 2, 3).int()
    tensors, _ = batch.packed()
    out, top, total = call(
        "npu::npu_nsa_select_attention", **tensors, topk_indices=indices, scale_value=batch.scale, head_num=8,
        select_block_size=64, select_block_count=3, actual_seq_qlen=[5, 8], actual_seq_kvlen=[300, 556],
    )  # fmt: skip
    expected = selected(batch, indices, 64)
    assert_close(out, stack([o for o, _ in expected]))
    assert top.shape == total.shape == (8, 8, 8)
    assert_close((top + total.log())[..., 0], stack([s for _, s in expected]))


@pytest.mark.parametrize("layout", ["BSND", "BSH", "TND"])
def test_select_attention_infer(layout: str) -> None:
    batch = Batch([1, 1, 1], [200, 70, 33], heads=(8, 2), size=(192, 128), dtype=torch.bfloat16)
    indices = torch.tensor([[[0, 12], [3, 5]], [[4, 0], [1, 2]], [[2, 1], [0, 2]]], dtype=torch.int32)
    pages, table = batch.pages(64)
    query = torch.cat(batch.query)
    query = {"BSND": query[:, None], "BSH": query.flatten(1)[:, None], "TND": query}[layout].contiguous()
    out = call(
        "npu::npu_nsa_select_attention_infer", query, pages["key"], pages["value"], indices, batch.scale, 8, 2, 16, 2,
        64, layout=layout, block_table=table, actual_seq_kvlen=batch.keys,
    )  # fmt: skip
    wanted = stack([o for o, _ in selected(batch, indices, 16)])
    assert_close(out.reshape(3, 8, 128), wanted)
    assert out.shape[:-1] == query.shape[:-1]


def test_refusals() -> None:
    x = torch.ones(2, 1, 4, 192).half()
    with pytest.raises(RuntimeError, match="block_table, actual_seq_kvlen"):
        torch.ops.npu.npu_nsa_select_attention_infer(
            x, x[:, 0], x[:, 0], torch.zeros(2, 4, 1, dtype=torch.int32), 1.0, 4, 4, 16, 1, 64
        )
    with pytest.raises(RuntimeError, match="multiples of 16"):
        torch.ops.npu.npu_nsa_compress(torch.ones(32, 4, 16).half(), torch.ones(8, 4).half(), 8, 8, actual_seq_len=[32])
