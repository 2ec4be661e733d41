# SPDX-License-Identifier: Apache-2.0
"""Norm, rotation and cache write in one operator, against the pages' formulas in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ascend_sim.references import limits

from .calls import call
from .oracle import Array, as_float64, assert_close

BLOCKS, BLOCK = 6, 16
MODES = ["Norm", "PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ"]


def rms(values: Array, gamma: Tensor, epsilon: float = 1e-5) -> Array:
    return values / np.sqrt((values**2).mean(-1, keepdims=True) + epsilon) * as_float64(gamma)


def interleaved(values: Array, cos: Tensor, sin: Tensor) -> Array:
    """The page's interleaveRope: even elements, then odd ones, rotated by halves."""
    x1, x2 = values[..., ::2], values[..., 1::2]
    return np.concatenate((x1, x2), -1) * as_float64(cos) + np.concatenate((-x2, x1), -1) * as_float64(sin)


def stored(values: Array, scale: Tensor | None, offset: Tensor | None) -> Array:
    if scale is None:
        return values
    factor, shift = (
        as_float64(t)[:, None] if t.dim() == 2 else as_float64(t)
        for t in (scale, scale * 0 if offset is None else offset)
    )
    return np.clip(np.round(values * factor + shift), -128, 127)


def index_for(mode: str, batch: int, length: int) -> tuple[Tensor, list[list[int]]]:
    """The index of a mode, and the slot (in "Norm" the position) of each token; one entry is left out."""
    if mode == "Norm":
        index = torch.stack([torch.randperm(30)[:length] for _ in range(batch)])
        index[0, 0] = -1
        return index, index.tolist()
    if not mode.startswith("PA_BLK"):
        index = torch.randperm(BLOCKS * BLOCK)[: batch * length]
        index[1] = -1
        return index, index.view(batch, length).tolist()
    per = -(-length // BLOCK)
    blocks = torch.tensor([4, 0, 5, 2][: batch * per])
    index = blocks * BLOCK
    index[1] = -1
    slots = [[int(index[b * per + t // BLOCK]) for t in range(length)] for b in range(batch)]
    return index, [[s if s < 0 else s + t % BLOCK for t, s in enumerate(row)] for row in slots]


def written(cache: Tensor, mode: str, batch: int, slot: int) -> Tensor:
    """Token [N, D] of a cache."""
    if mode == "Norm":
        return cache[batch, :, slot]
    blocks, size, _heads, _width = cache.shape
    if mode.endswith("NZ"):
        unit = 32 // cache.element_size()
        cache = cache.view(blocks, -1, size, unit).transpose(1, 2).reshape(cache.shape)
    return cache[slot // size, slot % size]


def compare(cache: Tensor, expected: Array, mode: str, slots: list[list[int]], tolerance: float) -> None:
    """``expected`` [B, N, S, D]; what is not written is still 7."""
    for b, row in enumerate(slots):
        for t, slot in enumerate(row):
            if slot >= 0:
                token = written(cache, mode, b, slot)
                np.testing.assert_allclose(as_float64(token), expected[b, :, t], rtol=tolerance, atol=tolerance)
    count = sum(slot >= 0 for row in slots for slot in row) * expected.shape[1] * expected.shape[3]
    assert int((cache != 7).sum()) <= count


CASES = [(m, s, q) for m in MODES for s in (False, True) for q in (False, True) if s or not q or m != "Norm"]
"""Cache mode, separate values, int8; the page allows no scales with joint parts in "Norm"."""


@pytest.mark.parametrize(("mode", "separate", "quantised"), CASES)
def test_kv_rmsnorm_rope_cache(mode: str, separate: bool, quantised: bool) -> None:
    """Joint: latent 512 and rope 64 of one row; separate: keys of 192 whose first 64 are rotated, and values of 128."""
    batch, length, heads = 2, 20, 2 if separate else 1
    dtype, rope, size = torch.bfloat16, 64, 192 if separate else 512
    kv = torch.randn(batch, heads, length, size + (0 if separate else rope)).to(dtype)
    v = torch.randn(batch, heads, length, 128).to(dtype) if separate else None
    gamma = torch.rand(size).add(0.5).to(dtype)
    cos, sin = (torch.rand(batch, 1, length, rope).to(dtype) for _ in range(2))
    normed = rms(as_float64(kv[..., :size]), gamma)
    if v is None:
        key, value = interleaved(as_float64(kv[..., size:]), cos, sin), normed
    else:
        key = np.concatenate((interleaved(normed[..., :rope], cos, sin), normed[..., rope:]), -1)
        value = as_float64(v)
    shape = (batch, heads, 30) if mode == "Norm" else (BLOCKS, BLOCK, heads)
    kind = torch.int8 if quantised else dtype
    caches = [torch.full((*shape, t.shape[-1]), 7).to(kind) for t in (key, value)]
    given: dict[str, Any] = {"v": v, "cache_mode": mode, "is_output_kv": True}
    scales: list[Tensor | None] = [None] * 4
    if quantised:
        sizes = (key.shape[-1], value.shape[-1])
        scales[:2] = [torch.rand(heads, n) * 30 if separate else torch.rand(n) * 30 for n in sizes]
        if separate:
            scales[2:] = [torch.rand(heads, n) * 10 - 5 for n in sizes]
        names = ("k_rope_scale", "c_kv_scale", "k_rope_offset", "c_kv_offset")
        given |= dict(zip(names, scales, strict=True))
    index, slots = index_for(mode, batch, length)
    functional = call(
        "npu::npu_kv_rmsnorm_rope_cache_v2_functional", kv, gamma, cos, sin, index, *caches, **given
    )  # fmt: skip
    again = [c.clone() for c in caches]
    second = call("npu::npu_kv_rmsnorm_rope_cache_v2", kv, gamma, cos, sin, index, *again, **given)
    results = call("npu::npu_kv_rmsnorm_rope_cache", kv, gamma, cos, sin, index, *caches, **given)
    assert results[0] is caches[0]
    assert results[1] is caches[1]
    for part, expected in enumerate((key, value)):
        bound = 1.0 if quantised else 2e-2
        compare(caches[part], stored(expected, scales[part], scales[part + 2]), mode, slots, bound)
        assert torch.equal(caches[part], again[part])
        assert torch.equal(caches[part], functional[2 + part])
        assert torch.equal(results[2 + part].isnan(), second[part].isnan())
        if mode != "Norm" or (separate and quantised):
            assert_close(results[2 + part], expected, 2e-2)
            assert torch.equal(functional[part], second[part])
        else:
            assert results[2 + part].isnan().all()


def kv_arguments() -> dict[str, Any]:
    return {
        "kv": torch.randn(2, 1, 1, 576).half(), "gamma": torch.ones(512).half(), "cos": torch.ones(2, 1, 1, 64).half(),
        "sin": torch.ones(2, 1, 1, 64).half(), "index": torch.tensor([3, 4]),
        "k_cache": torch.zeros(2, 16, 1, 64).half(), "ckv_cache": torch.zeros(2, 16, 1, 512).half(), "cache_mode": "PA",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cache_mode": "PA_BSND"}, "cache_mode is 'PA_BSND'"),
        ({"index": torch.tensor([3, 32])}, "slot 1 is 32; the hardware allows slots below 32"),
        ({"index": torch.tensor([[3], [4]])}, r"index.shape is \[2, 1\]; the hardware allows \[2\]"),
        ({"index": torch.tensor([3, 4]).int()}, "index is int32"),
        ({"gamma": torch.ones(500).half()}, r"kv.shape\[-1\] is 576; the hardware allows 564"),
        ({"c_kv_scale": torch.ones(512)}, "ckv_cache.dtype is torch.float16; the hardware allows int8"),
        ({"c_kv_offset": torch.ones(512)}, "offset of ckv_cache is given"),
        ({"cache_mode": "Norm", "index": torch.zeros(2, 1).long(), "k_rope_scale": torch.ones(64)}, "scale of k_cache"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_kv_rmsnorm_rope_cache_refuses(changes: dict[str, Any], message: str) -> None:
    torch.ops.npu.npu_kv_rmsnorm_rope_cache(**kv_arguments())
    with pytest.raises(RuntimeError, match=message):
        torch.ops.npu.npu_kv_rmsnorm_rope_cache(**(kv_arguments() | changes))


@pytest.mark.parametrize("quantised", ["no", "symmetric", "asymmetric"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_qkv_rms_norm_rope_cache(dtype: torch.dtype, quantised: str) -> None:
    """Splitting, norm, rotation by halves and the fractal write of the vendor's golden; -1 skips."""
    batch, length, heads, size = 3, 2, (4, 2, 2), 128
    qkv = torch.randn(batch * length, sum(heads) * size).to(dtype)
    gammas = [torch.rand(size).add(0.5).to(dtype) for _ in range(2)]
    cos, sin = (torch.rand(batch * length, size).to(dtype) for _ in range(2))
    index = torch.tensor([70, -1, 3, 44, 0, 95])
    kind = dtype if quantised == "no" else torch.int8
    unit = 16 if quantised == "no" else 32
    caches = [torch.full((BLOCKS, heads[1] * size // unit, BLOCK, unit), 9).to(kind) for _ in range(2)]
    scales = [torch.rand(heads[1], size) / 50 + 0.01 for _ in range(2)] if quantised != "no" else [None, None]
    offsets = [torch.rand(heads[1], size) * 9 for _ in range(2)] if quantised == "asymmetric" else [None, None]
    q_out = torch.zeros(batch * length, heads[0] * size).to(dtype)
    options: dict[str, Any] = {
        "k_scale": scales[0],
        "v_scale": scales[1],
        "k_offset": offsets[0],
        "v_offset": offsets[1],
    }
    arguments = ([batch, length, sum(heads), size], list(heads))
    after = call(
        "npu::npu_qkv_rms_norm_rope_cache_functional", qkv, *gammas, cos, sin, index, q_out, *caches, *arguments,
        **options, is_output_qkv=True,
    )  # fmt: skip
    before = call(
        "npu::npu_qkv_rms_norm_rope_cache", qkv, *gammas, cos, sin, index, q_out, *caches, *arguments, **options,
        is_output_qkv=True,
    )  # fmt: skip
    q, k, v = np.split(as_float64(qkv).reshape(batch * length, -1, size), np.cumsum(heads)[:-1], 1)

    def rotated(values: Array, gamma: Tensor) -> Array:
        normed = rms(values, gamma, 1e-6)
        first, second = np.split(normed, 2, -1)
        wide = [as_float64(t)[:, None] for t in (cos, sin)]
        return normed * wide[0] + np.concatenate((-second, first), -1) * wide[1]

    parts = (rotated(q, gammas[0]), rotated(k, gammas[1]), v)
    tolerance = 4e-3 if dtype == torch.float16 else 3e-2
    for actual, again, expected in zip(before, after[:3], parts, strict=True):
        assert_close(actual, expected.reshape(batch * length, -1), tolerance)
        assert torch.equal(actual, again)
    assert torch.equal(q_out, before[0])
    for cache, values, scale, offset in zip(caches, parts[1:], scales, offsets, strict=True):
        for token, slot in enumerate(index.tolist()):
            if slot < 0:
                continue
            actual = cache[slot // BLOCK, :, slot % BLOCK].reshape(heads[1], size)
            wanted = values[token]
            if scale is not None:
                wanted = wanted / as_float64(scale) + (0 if offset is None else as_float64(offset))
                wanted = np.clip(np.round(wanted), -128, 127)
            bound = tolerance if scale is None else 1.0
            np.testing.assert_allclose(as_float64(actual), wanted, rtol=bound, atol=bound)
    assert all(torch.equal(a, b) for a, b in zip((q_out, *caches), after[3:], strict=True))


def test_without_is_output_qkv_the_results_are_empty_scalars() -> None:
    results = call(
        "npu::npu_qkv_rms_norm_rope_cache", torch.ones(1, 384).half(), *[torch.ones(128).half()] * 2,
        *[torch.ones(1, 128).half()] * 2, torch.tensor([0]), torch.zeros(1, 128).half(),
        *[torch.zeros(1, 8, 16, 16).half()] * 2, [1, 1, 3, 128], [1, 1, 1],
    )  # fmt: skip
    assert [r.shape for r in results] == [()] * 3


def test_ascend_950_takes_offsets_with_joint_parts() -> None:
    given = kv_arguments() | {
        "k_cache": torch.zeros(2, 16, 1, 64).to(torch.int8), "k_rope_scale": torch.ones(64) * 5,
        "k_rope_offset": torch.ones(64) * 3,
    }  # fmt: skip
    with limits.as_family(limits.Family.A5):
        torch.ops.npu.npu_kv_rmsnorm_rope_cache(**given)
    rotated = interleaved(as_float64(given["kv"])[..., 512:], given["cos"], given["sin"])
    expected = np.clip(np.round(rotated * 5 + 3), -128, 127)[:, 0, 0]
    np.testing.assert_allclose(as_float64(given["k_cache"][0, [3, 4], 0]), expected, atol=1.0)
