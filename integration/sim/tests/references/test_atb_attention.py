# SPDX-License-Identifier: Apache-2.0
"""Attention of the Ascend Transformer Boost library against the goldens of the vendor's tests, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from .fia_cases import Batch, stack
from .oracle import assert_close


def results(batch: Batch, mode: int = 0) -> np.ndarray:
    return stack([out for out, _ in batch.expected(mode)])


def caches(batch: Batch, block_size: int, fractal: bool = False) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Key and value caches [blocks, block_size, heads, size] (or fractal), and the table."""
    pages, table = batch.pages(block_size)
    out = []
    for name, size in (("key", batch.size[0]), ("value", batch.size[1])):
        cache = pages[name].unflatten(2, (batch.heads[1], size)).contiguous()
        out.append(cache.flatten(2).unflatten(2, (-1, 16)).transpose(1, 2).contiguous() if fractal else cache)
    return out, table


@pytest.mark.parametrize("fractal", [False, True], ids=["nd", "nz"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_paged_attention(dtype: torch.dtype, fractal: bool) -> None:
    """The vendor's test has other sizes for values than for keys."""
    batch = Batch([1, 1, 1], [40, 3, 17], heads=(4, 2), size=(96, 32), dtype=dtype)
    (key, value), table = caches(batch, 16, fractal)
    out = torch.zeros(3, 4, 32, dtype=dtype)
    lengths = torch.tensor(batch.keys, dtype=torch.int32)
    arguments = (torch.cat(batch.query), key, value, 2, 4, batch.scale, table, lengths, out)
    workspace = torch.ops.atb._npu_paged_attention_get_workspace(*arguments)
    torch.ops.atb._npu_paged_attention(*arguments, workspace=workspace)
    assert_close(out, results(batch))


def test_paged_attention_refuses_other_lengths() -> None:
    batch = Batch([1, 1], [4, 4])
    (key, value), table = caches(batch, 16)
    with pytest.raises(RuntimeError, match=r"_npu_paged_attention: len\(context_lens\) is 1; the hardware allows 2"):
        torch.ops.atb._npu_paged_attention(
            torch.cat(batch.query),
            key,
            value,
            2,
            4,
            1.0,
            table,
            torch.tensor([4], dtype=torch.int32),
            torch.zeros(2, 4, 64),
        )


def test_paged_attention_refuses_a_smaller_value_cache() -> None:
    batch = Batch([1, 1], [4, 4])
    (key, value), table = caches(batch, 16)
    lengths = torch.tensor(batch.keys, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="_npu_paged_attention: the value cache is"):
        torch.ops.atb._npu_paged_attention(
            torch.cat(batch.query), key, value[:1], 2, 4, 1.0, table, lengths, torch.zeros(2, 4, 64).half()
        )


def test_splitfuse_of_prefill_and_decode() -> None:
    batch = Batch([5, 1, 3], [21, 9, 3], dtype=torch.bfloat16)
    (key, value), table = caches(batch, 16)
    mask = torch.zeros(sum(batch.queries), max(batch.keys))
    row = 0
    for queries, keys in zip(batch.queries, batch.keys, strict=True):
        for i in range(queries):
            mask[row, keys - queries + i + 1 :] = -10000
            row += 1
    out = torch.zeros(9, 4, 64).bfloat16()
    torch.ops.atb._npu_paged_attention_splitfuse(
        torch.cat(batch.query), key, value, table, torch.tensor(batch.keys, dtype=torch.int32), mask.bfloat16(),
        torch.tensor(batch.queries, dtype=torch.int32), 2, 4, batch.scale, out,
    )  # fmt: skip
    assert_close(out, results(batch, 3))


def test_flash_attention_with_an_additive_mask() -> None:
    batch = Batch([6, 4], [6, 4], size=(64, 48))
    out = torch.zeros(10, 4, 48).half()
    mask = torch.ones(6, 6).triu(1).mul(-10000).half()
    lengths = torch.tensor(batch.queries, dtype=torch.int32)
    tensors = [torch.cat(t) for t in (batch.query, batch.key, batch.value)]
    torch.ops.atb._npu_flash_attention(*tensors, mask, lengths, batch.scale, 4, 2, out)
    assert_close(out, results(batch, 3))


def test_flash_attention_unpad_sees_the_whole_sequence() -> None:
    batch = Batch([6, 4], [6, 4])
    out = torch.zeros(10, 4, 64).half()
    lengths = torch.tensor(batch.queries, dtype=torch.int32)
    tensors = [torch.cat(t) for t in (batch.query, batch.key, batch.value)]
    torch.ops.atb._npu_flash_attention_unpad(*tensors, lengths, batch.scale, 4, 2, out)
    assert_close(out, results(batch))
