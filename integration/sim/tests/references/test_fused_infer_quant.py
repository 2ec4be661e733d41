# SPDX-License-Identifier: Apache-2.0
"""int8 in npu_fused_infer_attention_score: results, keys and values with one tensor of scales, and queries of MLA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from .calls import call
from .fia_cases import COMPRESSED, Batch, stack
from .oracle import assert_close

V1, V2 = "npu::npu_fused_infer_attention_score", "npu::npu_fused_infer_attention_score_v2"


@pytest.mark.parametrize("per", ["tensor", "channel"])
@pytest.mark.parametrize("layout", ["BSH", "BNSD", "BSND"])
@pytest.mark.parametrize("offset", [False, True], ids=["symmetric", "offset"])
def test_int8_result(layout: str, per: str, offset: bool) -> None:
    """round(out * scale + offset); per channel [H] or [N, D]."""
    batch = Batch([3, 3], [6, 6])
    tensors, _ = batch.padded(layout)
    shape: tuple[int, ...] = (1,) if per == "tensor" else (256,) if layout == "BSH" else (4, 64)
    scale = torch.rand(shape) * 40 + 20
    given: dict[str, Any] = {"quant_scale2": scale}
    shift = torch.zeros(shape)
    if offset:
        shift = given["quant_offset2"] = torch.randint(-20, 20, shape).float()
    out, _ = call(V1, **tensors, **batch.common(), **given, input_layout=layout)
    assert out.dtype == torch.int8
    whole = stack([o for o, _ in batch.expected()], 3)
    spread = [t.double().numpy() if per == "tensor" else t.double().view(4, 64).numpy() for t in (scale, shift)]
    exact = np.clip(whole * spread[0] + spread[1], -128, 127)
    found = out.view(2, 3, 4, 64) if layout == "BSH" else out.transpose(1, 2) if layout == "BNSD" else out
    assert np.abs(found.double().numpy() - exact).max() < 0.6


def test_int8_result_of_version_two() -> None:
    batch = Batch([2, 3], [4, 3])
    tensors, lists = batch.packed()
    out, _ = call(
        V2, **tensors, actual_seq_qlen=lists["actual_seq_lengths"], actual_seq_kvlen=lists["actual_seq_lengths_kv"],
        num_query_heads=4, num_key_value_heads=2, softmax_scale=batch.scale, input_layout="TND",
        quant_scale_out=torch.tensor([30.0]),
    )  # fmt: skip
    assert out.dtype == torch.int8
    exact = stack([o for o, _ in batch.expected()]) * 30
    assert np.abs(out.double().numpy() - exact).max() < 0.6


SHAPES = {"channel": (2, 2, 1, 64), "tensor": (2,), "token": (2, 2, 6)}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("offset", [False, True], ids=["symmetric", "offset"])
def test_scales_of_key_and_value_in_one_tensor(kind: str, offset: bool) -> None:
    batch = Batch([1, 1], [6, 6])
    scale, shift = torch.rand(SHAPES[kind]) * 0.02, torch.randint(-5, 5, SHAPES[kind]).float() * offset
    given: dict[str, Any] = {"antiquant_scale": scale, "antiquant_mode": int(kind == "token")}
    if offset:
        given["antiquant_offset"] = shift
    stored = {}
    for index, name in enumerate(("key", "value")):
        stored[name] = torch.randint(-100, 100, (2, 2, 6, 64), dtype=torch.int8)
        factor, term = (
            t[index].double()[:, None, :, None] if kind == "token" else t[index].double() for t in (scale, shift)
        )
        getattr(batch, name)[:] = list(((stored[name].double() + term) * factor).transpose(1, 2))
    query = torch.stack(batch.query).transpose(1, 2).contiguous()
    out, _ = call(V1, query, **stored, **batch.common(), **given, input_layout="BNSD")
    assert_close(out, stack([o for o, _ in batch.expected()], 1).transpose(0, 2, 1, 3), 4e-3)


def quantised(rows: Tensor) -> tuple[Tensor, Tensor]:
    scale = rows.abs().amax(-1) / 127
    return torch.round(rows / scale[..., None]).to(torch.int8), scale


@pytest.mark.parametrize("layout", ["TND", "BSH", "BSND", "BNSD"])
def test_int8_queries_of_latent_attention(layout: str) -> None:
    """The page: query, key and value int8, scales per token and head for the query and one for the cache."""
    batch = Batch([2, 2], [140, 300], heads=(4, 1), size=(576, 512), dtype=torch.bfloat16)
    nope, scale = quantised(torch.cat(batch.query)[..., :512].float())
    rope = torch.cat(batch.query)[..., 512:].contiguous()
    batch.query = list(torch.cat((nope.double() * scale[..., None].double(), rope.double()), -1).split(2))
    keys = []
    for request, key in enumerate(batch.key):
        stored = torch.round(key[..., :512].float() / 0.03).clamp(-128, 127)
        keys.append(torch.cat((stored.to(torch.bfloat16), key[..., 512:]), -1))
        restored = (keys[-1][..., :512].double() * 0.03, keys[-1][..., 512:].double())
        batch.key[request], batch.value[request] = torch.cat(restored, -1), restored[0]
    expected = stack([o for o, _ in batch.expected(3)])
    batch.key, batch.value, batch.dtype = keys, [k[..., :512] for k in keys], torch.bfloat16
    pages, table = batch.pages(128)
    cache = pages["key"].nan_to_num()
    latent, key_rope = cache[..., :512].to(torch.int8), cache[..., 512:].contiguous()
    parts = {"query": nope, "query_rope": rope, "dequant_scale_query": scale}
    if layout != "TND":
        parts = {name: t.unflatten(0, (2, 2)) for name, t in parts.items()}
    if layout == "BNSD":
        parts = {name: t.transpose(1, 2).contiguous() for name, t in parts.items()}
    if layout == "BSH":
        parts = {name: t if t.dim() == 3 else t.flatten(2) for name, t in parts.items()}
    one = torch.tensor([0.03])
    out, _ = call(
        V2, **parts, key=latent, value=latent, key_rope=key_rope, dequant_scale_key=one, dequant_scale_value=one,
        query_quant_mode=3, num_query_heads=4, num_key_value_heads=1, softmax_scale=batch.scale, input_layout=layout,
        block_table=table, block_size=128, sparse_mode=3, atten_mask=COMPRESSED,
        actual_seq_qlen=[2, 4] if layout == "TND" else [2, 2], actual_seq_kvlen=batch.keys,
    )  # fmt: skip
    assert out.dtype == torch.bfloat16
    found = out.transpose(1, 2) if layout == "BNSD" else out
    assert_close(found.reshape(4, 4, 512), expected)
