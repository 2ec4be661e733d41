# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from .oracle import as_float64, assert_close

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def turn(x: np.ndarray, angles: np.ndarray, pairs: str) -> np.ndarray:
    """Rotate the plane (x[i], x[partner]) by angles[..., i]: the definition of the embedding.

    pairs: ``half`` pairs i with i + D/2, ``interleave`` pairs 2i with 2i + 1.
    """
    out = np.empty_like(x)
    half = x.shape[-1] // 2
    for i in range(half):
        first, second = (i, i + half) if pairs == "half" else (2 * i, 2 * i + 1)
        cos, sin = np.cos(angles[..., i]), np.sin(angles[..., i])
        out[..., first] = x[..., first] * cos - x[..., second] * sin
        out[..., second] = x[..., second] * cos + x[..., first] * sin
    return out


def spread(values: np.ndarray, pairs: str) -> np.ndarray:
    """One value per angle to one per element, as cos and sin arguments are given."""
    return np.concatenate((values, values), -1) if pairs == "half" else np.repeat(values, 2, axis=-1)


def tensor(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(array).to(dtype)


@pytest.mark.parametrize("pairs", ["half", "interleave"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rotary_mul(dtype: torch.dtype, pairs: str) -> None:
    x = torch.randn(2, 5, 3, 16, dtype=dtype)
    batch = 2 if pairs == "half" else 1  # pairs are rotated alike in all requests
    angles = np.random.default_rng(0).uniform(-3, 3, (batch, 5, 1, 8))
    cos, sin = (tensor(spread(f(angles), pairs), dtype) for f in (np.cos, np.sin))
    y = torch.ops.npu.npu_rotary_mul(x, cos, sin, pairs)
    assert y.dtype == dtype
    assert_close(
        y, turn(as_float64(x), angles, pairs), 3 * {torch.float32: 2e-6, torch.float16: 2e-3}.get(dtype, 1.6e-2)
    )


def test_rotary_mul_with_the_pages_half_matrix() -> None:
    """The page builds the matrix that stands for the half rotation."""
    rotate = torch.zeros(8, 8)
    rotate[:4, 4:], rotate[4:, :4] = torch.eye(4), -torch.eye(4)
    x, cos, sin = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 1, 8), torch.randn(1, 2, 1, 8)
    torch.testing.assert_close(
        torch.ops.npu.npu_rotary_mul(x, cos, sin, "half", rotate), torch.ops.npu.npu_rotary_mul(x, cos, sin, "half")
    )


@pytest.mark.parametrize("layout", ["BSND", "TND"])
def test_apply_rotary_pos_emb_writes_in_place(layout: str) -> None:
    lead = (2, 3) if layout == "BSND" else (6,)
    query, key = torch.randn(*lead, 4, 64), torch.randn(*lead, 2, 64)
    angles = np.random.default_rng(1).uniform(-3, 3, (*lead, 1, 32))
    cos, sin = (tensor(spread(f(angles), "half"), torch.float32) for f in (np.cos, np.sin))
    expected = [turn(as_float64(t), angles, "half") for t in (query, key)]
    result = torch.ops.npu.npu_apply_rotary_pos_emb(query, key, cos, sin, layout)
    for out, given, value in zip(result, (query, key), expected, strict=True):
        assert out.data_ptr() == given.data_ptr()
        assert_close(given, value)


def test_interleave_rope_reorders_pairs_to_halves() -> None:
    x = torch.randn(2, 3, 4, 64, dtype=torch.float16)
    angles = np.random.default_rng(2).uniform(-3, 3, (2, 1, 4, 32))
    cos, sin = (tensor(spread(f(angles), "half"), torch.float16) for f in (np.cos, np.sin))
    turned = turn(as_float64(x), angles, "interleave")
    expected = np.concatenate((turned[..., ::2], turned[..., 1::2]), -1)
    assert_close(torch.ops.npu.npu_interleave_rope(x, cos, sin), expected, 5e-3)


def cache(positions: int, half: int) -> tuple[np.ndarray, torch.Tensor]:
    angles = np.random.default_rng(3).uniform(-3, 3, (positions, half))
    return angles, tensor(np.concatenate((np.cos(angles), np.sin(angles)), -1), torch.float32)


@pytest.mark.parametrize("pairs", ["half", "interleave"])
def test_mrope_with_one_position_row_leaves_the_rest_of_a_head(pairs: str) -> None:
    angles, table = cache(20, 16)
    positions = torch.tensor([3, 0, 19, 7])
    query, key = torch.randn(4, 3 * 48), torch.randn(4, 48)
    out = torch.ops.npu.npu_mrope(positions, query, key, table, 48, mrope_section=[0, 0, 0], rotary_mode=pairs)
    for given, turned in zip((query, key), out, strict=True):
        heads = as_float64(given).reshape(4, -1, 48)
        rotated = turn(heads[..., :32], angles[positions.numpy()][:, None], pairs)
        assert_close(turned, np.concatenate((rotated, heads[..., 32:]), -1).reshape(given.shape))


@pytest.mark.parametrize("cache_mode", ["default", "interleave"])
def test_mrope_sections_choose_the_position_row(cache_mode: str) -> None:
    """Angle i comes from temporal, height or width positions: in blocks of 16, 24, 24, or taking turns."""
    angles, table = cache(30, 64)
    positions = torch.randint(0, 30, (3, 5))
    source = np.repeat([0, 1, 2], [16, 24, 24])
    if cache_mode == "interleave":
        source = np.array([axis if axis == 0 or i < 3 * 24 else 0 for i in range(64) for axis in [i % 3]])
    picked = np.stack([angles[positions[axis].numpy(), i] for i, axis in enumerate(source)], -1)
    query, key = torch.randn(5, 2 * 128), torch.randn(5, 128)
    out = torch.ops.npu.npu_mrope(positions, query, key, table, 128, mrope_section=[16, 24, 24], cache_mode=cache_mode)
    for given, turned in zip((query, key), out, strict=True):
        heads = as_float64(given).reshape(5, -1, 128)
        assert_close(turned, turn(heads, picked[:, None], "half").reshape(given.shape))


@pytest.mark.parametrize("neox", [True, False], ids=["halves", "pairs"])
def test_atb_rotary_embedding_writes_in_place(neox: bool) -> None:
    angles, table = cache(12, 8)
    positions = torch.tensor([11, 2, 5])
    query, key = torch.randn(3, 2 * 16).half(), torch.randn(3, 16).half()
    expected = [
        turn(as_float64(t).reshape(3, -1, 16), angles[positions.numpy()][:, None], "half" if neox else "interleave")
        for t in (query, key)
    ]
    torch.ops.atb._npu_rotary_embedding(positions, query, key, 16, table, neox)
    for given, value in zip((query, key), expected, strict=True):
        assert_close(given, value.reshape(given.shape), 2e-3)
