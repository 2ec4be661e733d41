# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from .oracle import as_float64, assert_close, attention

update = torch.ops.npu.npu_attention_update


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_formula(dtype: torch.dtype) -> None:
    lse, outs = [torch.randn(6) * 3 for _ in range(3)], [torch.randn(6, 16).to(dtype) for _ in range(3)]
    sums = np.stack([as_float64(s) for s in lse])
    merged = sums.max(0) + np.log(np.exp(sums - sums.max(0)).sum(0))
    expected = sum(as_float64(o) * np.exp(s - merged)[:, None] for o, s in zip(outs, sums, strict=True))
    out, lse_out = update(lse, outs, 1)
    assert out.dtype == dtype
    assert_close(out, expected)
    assert_close(lse_out, merged)


def test_parts_of_the_keys_merge_to_all_of_them() -> None:
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 2, 8)), rng.normal(size=(10, 2, 8)), rng.normal(size=(10, 2, 8))
    whole, _ = attention(q, k, v, 0.3)
    parts = [attention(q, k[s], v[s], 0.3) for s in (slice(0, 4), slice(4, 10))]
    out, _ = update(
        [torch.from_numpy(lse).float().flatten() for _, lse in parts],
        [torch.from_numpy(o).float().flatten(0, 1) for o, _ in parts],
        0,
    )
    assert_close(out, whole.reshape(6, 8))


@pytest.mark.parametrize(
    ("size", "update_type", "message"),
    [
        (12, 0, r"local_out\[0\].shape\[-1\] is 12; the hardware allows multiples of 8, 8 to 512"),
        (8, 2, "update_type is 2; the hardware allows 0, 1"),
    ],
)
def test_refuses(size: int, update_type: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=f"npu_attention_update: {message}"):
        update([torch.zeros(2)], [torch.zeros(2, size)], update_type)
