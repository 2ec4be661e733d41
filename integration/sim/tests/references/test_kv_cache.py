# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch

DTYPES = [torch.float16, torch.bfloat16, torch.float32]


def written(cache: torch.Tensor, tokens: torch.Tensor, slots: list[int]) -> torch.Tensor:
    """The vendor's golden: a token goes to block slot // size, offset slot % size, and nowhere for a slot below 0."""
    out = cache.clone()
    for token, slot in zip(tokens, slots, strict=True):
        if slot >= 0:
            out[slot // cache.shape[1], slot % cache.shape[1]] = token
    return out


def fractal(cache: torch.Tensor, width: int = 16) -> torch.Tensor:
    """[blocks, size, heads, D] as [blocks, heads * D / width, size, width]."""
    blocks, size = cache.shape[:2]
    return cache.reshape(blocks, size, -1, width).transpose(1, 2).contiguous()


@pytest.mark.parametrize("slots", [[5, 0, 11], [-1, 7, -1]], ids=["all", "padded"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reshape_and_cache(dtype: torch.dtype, slots: list[int]) -> None:
    key, value = torch.randn(3, 2, 8).to(dtype), torch.randn(3, 2, 6).to(dtype)
    key_cache, value_cache = torch.randn(3, 4, 2, 8).to(dtype), torch.randn(3, 4, 2, 6).to(dtype)
    expected = written(key_cache, key, slots), written(value_cache, value, slots)
    index = torch.tensor(slots, dtype=torch.int32)
    torch.ops.atb._npu_reshape_and_cache(key, value, key_cache, value_cache, index)
    assert torch.equal(key_cache, expected[0])
    assert torch.equal(value_cache, expected[1])


def test_reshape_and_cache_fractal() -> None:
    key, value = torch.randn(3, 2, 32), torch.randn(3, 2, 16)
    caches = torch.randn(3, 4, 2, 32), torch.randn(3, 4, 2, 16)
    slots = [9, 2, 4]
    expected = [fractal(written(c, t, slots)) for c, t in zip(caches, (key, value), strict=True)]
    stored = [fractal(c) for c in caches]
    torch.ops.atb._npu_reshape_and_cache(key, value, *stored, torch.tensor(slots, dtype=torch.int32))
    assert all(torch.equal(a, b) for a, b in zip(stored, expected, strict=True))


def test_reshape_and_cache_takes_more_tokens_than_slots() -> None:
    """Padded batches pass every token and slots only for the real ones."""
    key, cache = torch.randn(5, 1, 4), torch.zeros(2, 4, 1, 4)
    expected = written(cache, key[:2], [1, 6])
    torch.ops.atb._npu_reshape_and_cache_siso(key, cache, torch.tensor([1, 6], dtype=torch.int32))
    assert torch.equal(cache, expected)


def test_reshape_and_cache_refuses_a_slot_past_the_cache() -> None:
    key, cache = torch.randn(1, 1, 4), torch.zeros(2, 4, 1, 4)
    with pytest.raises(
        RuntimeError, match="_npu_reshape_and_cache_siso: slot 0 is 8; the hardware allows slots below 8"
    ):
        torch.ops.atb._npu_reshape_and_cache_siso(key, cache, torch.tensor([8], dtype=torch.int32))


def test_reshape_and_cache_refuses_another_token() -> None:
    slots = torch.tensor([0], dtype=torch.int32)
    with pytest.raises(RuntimeError, match=r"tokens are Float .*; the hardware allows those of the cache"):
        torch.ops.atb._npu_reshape_and_cache_siso(torch.randn(1, 1, 4), torch.zeros(2, 4, 1, 6), slots)


def test_reshape_and_cache_writes_a_cache_that_is_half_of_a_tensor() -> None:
    """Keys and values of a layer may share one allocation, [2, blocks, ...] or [blocks, 2, ...]."""
    both = torch.zeros(3, 2, 4, 1, 8)
    key = torch.randn(2, 1, 8)
    torch.ops.atb._npu_reshape_and_cache(key, key + 1, both[:, 0], both[:, 1], torch.tensor([9, 2], dtype=torch.int32))
    assert torch.equal(both[2, 0, 1], key[0])
    assert torch.equal(both[0, 1, 2], key[1] + 1)
    assert both.count_nonzero() == 4 * 8


def test_reshape_and_cache_refuses_int64_slots() -> None:
    key, cache = torch.randn(1, 1, 4), torch.zeros(2, 4, 1, 4)
    with pytest.raises(RuntimeError, match="slot_indices is int64; the hardware allows int32"):
        torch.ops.atb._npu_reshape_and_cache_siso(key, cache, torch.tensor([0]))


@pytest.mark.parametrize("cache_mode", ["Norm", None, "PA_NZ"])
def test_scatter_pa_kv_cache(cache_mode: str | None) -> None:
    key, value = torch.randn(4, 2, 32).half(), torch.randn(4, 2, 16).half()
    caches = torch.randn(3, 4, 2, 32).half(), torch.randn(3, 4, 2, 16).half()
    slots = [3, 8, 0, 10]
    expected = [written(c, t, slots) for c, t in zip(caches, (key, value), strict=True)]
    stored = [c.clone() for c in caches]
    if cache_mode == "PA_NZ":
        expected, stored = [fractal(c) for c in expected], [fractal(c) for c in caches]
    arguments = (key, value, *stored, torch.tensor(slots))
    functional = torch.ops.npu.npu_scatter_pa_kv_cache_functional(*arguments, cache_mode=cache_mode)
    torch.ops.npu.npu_scatter_pa_kv_cache(*arguments, cache_mode=cache_mode)
    assert all(torch.equal(a, b) for a, b in zip(stored, expected, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(functional, expected, strict=True))


@pytest.mark.parametrize("offsets", [None, [4, 0, 8]], ids=["from-start", "seq_offset"])
@pytest.mark.parametrize("cumulative", [False, True], ids=["lengths", "sums"])
def test_gather_pa_kv_cache(cumulative: bool, offsets: list[int] | None) -> None:
    """Lengths 5, 0, 3; offsets skip whole blocks of 4 of the table."""
    key_cache, value_cache = (torch.randn(8, 4, 2, d).half() for d in (8, 6))
    table = torch.tensor([[7, 2, 5], [0, 0, 0], [3, 6, 1]], dtype=torch.int32)
    first = {None: [7, 2, 3], 1: [2, 5, 1]}[offsets and 1]
    lengths = [5, 0, 3]
    expected = [torch.cat((c[first[0]], c[first[1], :1], c[first[2], :3])) for c in (key_cache, value_cache)]
    seq_lens = torch.tensor([0, 5, 5, 8] if cumulative else lengths, dtype=torch.int32)
    offset = None if offsets is None else torch.tensor(offsets, dtype=torch.int32)
    key, value = torch.zeros(8, 2, 8).half(), torch.zeros(8, 2, 6).half()
    arguments = (key_cache, value_cache, table, seq_lens, key, value)
    options = {"seq_offset": offset, "is_seq_lens_cumsum": cumulative}
    functional = torch.ops.npu.npu_gather_pa_kv_cache_functional(*arguments, **options)
    assert not key.any()
    torch.ops.npu.npu_gather_pa_kv_cache(*arguments, **options)
    assert all(torch.equal(a, b) for a, b in zip((key, value), expected, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(functional, expected, strict=True))


def test_paged_cache_load_matches_the_vendors_golden() -> None:
    cache = torch.randn(6, 4, 1, 10).half()
    table = torch.tensor([[5, 1], [2, 4]], dtype=torch.int32)
    expected = torch.cat((cache[5], cache[1, :2], cache[4, :3]))
    key, value = torch.zeros(2, 9, 1, 10).half()
    arguments = (cache, cache, table, torch.tensor([6, 3], dtype=torch.int32))
    starts = torch.tensor([0, 4], dtype=torch.int32)
    torch.ops.atb.npu_paged_cache_load.out(*arguments, seq_starts=starts, key=key, value=value)
    new = torch.ops.atb.npu_paged_cache_load(*arguments, seq_starts=starts)
    assert all(torch.equal(tensor, expected) for tensor in (key, value, *new))


def test_scatter_nd_update() -> None:
    """The page: input (4, 5, 6) with indices (3, 2) takes updates (3, 6)."""
    data, updates = torch.randn(4, 5, 6), torch.randn(3, 6)
    indices = torch.tensor([[0, 4], [3, 1], [2, 2]])
    expected = data.clone()
    for (i, j), row in zip(indices.tolist(), updates, strict=True):
        expected[i, j] = row
    out = torch.ops.npu.npu_scatter_nd_update(data, indices, updates)
    assert torch.equal(out, expected)
    assert not torch.equal(data, expected)
    assert torch.ops.npu.npu_scatter_nd_update_(data, indices, updates) is data
    assert torch.equal(data, expected)
