# SPDX-License-Identifier: Apache-2.0
"""Versions 2 and 3 of npu_fusion_attention, and merging two of its results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from .calls import call
from .fia_cases import COMPRESSED, Batch, stack
from .oracle import as_float64, assert_close

V2, V3 = "npu::npu_fusion_attention_v2", "npu::npu_fusion_attention_v3"


def bnsd(results: list[np.ndarray], rows: int) -> np.ndarray:
    return stack(results, rows).transpose(0, 2, 1, 3)


@pytest.mark.parametrize("mode", [0, 2, 3, 4])
@pytest.mark.parametrize("name", [V2, V3])
def test_padded(name: str, mode: int) -> None:
    batch = Batch([4, 4], [6, 6], dtype=torch.float32)
    tensors, _ = batch.padded("BNSD")
    suffix = "tokens" if name == V2 else "tockens"
    band: dict[str, Any] = {f"pre_{suffix}": 2, f"next_{suffix}": 1}
    out, top, total, *_ = call(
        name, **tensors, head_num=4, input_layout="BNSD", scale=batch.scale, sparse_mode=mode, **band,
        atten_mask=COMPRESSED if mode else None,
    )  # fmt: skip
    expected = batch.expected(mode, 2, 1) if mode else batch.expected()
    assert_close(out, bnsd([o for o, _ in expected], 4))
    assert_close(top[..., 0] + total[..., 0].log(), stack([s for _, s in expected], 4).transpose(0, 2, 1))


@pytest.mark.parametrize("kind", [0, 1])
def test_bias_before_or_after_scaling(kind: int) -> None:
    """The page: scale * (q k + pse) for pse_type 1, scale * q k + pse otherwise."""
    batch = Batch([4, 4], [6, 6], dtype=torch.float32)
    tensors, _ = batch.padded("BNSD")
    pse = torch.randn(2, 4, 4, 6)
    out, *_ = call(V2, **tensors, head_num=4, input_layout="BNSD", scale=batch.scale, pse=pse, pse_type=kind)
    bias = [as_float64(p) * (batch.scale if kind else 1) for p in pse]
    assert_close(out, bnsd([o for o, _ in batch.expected(bias=bias)], 4))


def test_rotary_parts() -> None:
    batch = Batch([2, 3], [4, 3], size=(96, 64), dtype=torch.bfloat16)
    query, query_rope = (t.contiguous() for t in torch.cat(batch.query).split([64, 32], -1))
    key, key_rope = (t.contiguous() for t in torch.cat(batch.key).split([64, 32], -1))
    out, top, *_ = torch.ops.npu.npu_fusion_attention_v2(
        query, key, torch.cat(batch.value), 4, "TND", query_rope=query_rope, key_rope=key_rope, scale=batch.scale,
        actual_seq_qlen=[2, 5], actual_seq_kvlen=[4, 7], sparse_mode=3, atten_mask=COMPRESSED,
    )  # fmt: skip
    assert_close(out, stack([o for o, _ in batch.expected(3)]))
    assert top.shape == (5, 4, 8)


def test_packed_with_sums_as_tensors() -> None:
    batch = Batch([2, 3], [2, 3], dtype=torch.float32)
    tensors, lists = batch.packed()
    sums = [torch.tensor(lists[n]) for n in ("actual_seq_lengths", "actual_seq_lengths_kv")]
    out, _, _, rest, seed, offset = call(
        V3, **tensors, head_num=4, input_layout="TND", scale=batch.scale, actual_seq_qlen=sums[0],
        actual_seq_kvlen=sums[1], sparse_mode=3, atten_mask=COMPRESSED, device=False,
    )  # fmt: skip
    assert_close(out, stack([o for o, _ in batch.expected(3)]))
    assert rest.numel() == 0
    assert seed.dtype == offset.dtype == torch.int64


@pytest.mark.parametrize("given", [{"keep_prob": 0.5}, {"prefix": [1]}, {"pse_type": 2}, {"q_start_idx": [0]}], ids=str)
def test_version_two_says_what_is_not_simulated(given: dict[str, object]) -> None:
    x = torch.ones(1, 4, 2, 64).half()
    with pytest.raises(NotImplementedError, match=next(iter(given))):
        torch.ops.npu.npu_fusion_attention_v2(x, x, x, 4, "BNSD", **given)


def eight(x: Tensor) -> Tensor:
    return x.unsqueeze(-1).expand(*x.shape, 8).contiguous()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("layout", ["SBH", "TND"])
def test_ring_attention_update(layout: str, dtype: torch.dtype) -> None:
    """The golden and the sizes of the vendor's test."""
    shape, heads = ((4, 2, 32), (2, 2, 4)) if layout == "SBH" else ((5, 2, 64), (5, 2))
    outs = [torch.randn(shape).to(dtype) for _ in range(2)]
    tops, sums = ([torch.rand(heads) + 0.2 for _ in range(2)] for _ in range(2))
    arguments = (outs[0], eight(tops[0]), eight(sums[0]), outs[1], eight(tops[1]), eight(sums[1]))
    given = {"actual_seq_qlen": torch.tensor([2, 5])} if layout == "TND" else {}
    found = call("npu::npu_ring_attention_update", *arguments, input_layout=layout, input_softmax_layout="TND", **given)
    exact = [[as_float64(t) for t in pair] for pair in (outs, tops, sums)]
    top = np.maximum(*exact[1])
    parts = [np.exp(m - top) * s for m, s in zip(exact[1], exact[2], strict=True)]
    total = parts[0] + parts[1]
    factors = [p / total for p in parts]
    if layout == "SBH":
        factors = [f.transpose(2, 0, 1) for f in factors]
    split = [o.reshape(*factors[0].shape, -1) for o in exact[0]]
    merged = sum(o * f[..., None] for o, f in zip(split, factors, strict=True))
    assert_close(found[0], np.asarray(merged).reshape(shape), 1e-5 if dtype == torch.float32 else 2e-2)
    assert_close(found[1], np.repeat(top[..., None], 8, -1), 1e-6)
    assert_close(found[2], np.repeat(total[..., None], 8, -1), 1e-6)
