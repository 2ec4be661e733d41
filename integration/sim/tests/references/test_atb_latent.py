# SPDX-License-Identifier: Apache-2.0
"""Latent attention of the Ascend Transformer Boost library against the goldens of the vendor's tests, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from .calls import call
from .fia_cases import Batch, stack
from .oracle import assert_close
from .test_atb_attention import caches, results

MLA: dict[str, Any] = {"heads": (8, 1), "size": (576, 512)}


def shared(batch: Batch) -> Batch:
    """Let the values be the first elements of the keys, as in a latent cache."""
    batch.value = [k[..., : batch.size[1]].clone() for k in batch.key]
    return batch


def fractal(cache: Tensor) -> Tensor:
    return cache.flatten(2).unflatten(2, (-1, 16)).transpose(1, 2).contiguous()


def decode(batch: Batch, nz: bool = False) -> tuple[Any, ...]:
    (key, _), table = caches(batch, 16)
    latent, rope = (t.contiguous() for t in key.split([512, 64], -1))
    latent, rope = (fractal(latent), fractal(rope)) if nz else (latent, rope)
    query = [t.contiguous() for t in torch.cat(batch.query).split([512, 64], -1)]
    return (*query, latent, rope, table, batch.keys, 8, batch.scale, 1)


@pytest.mark.parametrize("nz", [False, True], ids=["nd", "nz"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_multi_head_latent_attention(dtype: torch.dtype, nz: bool) -> None:
    batch = shared(Batch([1, 1, 1], [40, 3, 17], dtype=dtype, **MLA))
    mode = "nzcache" if nz else "krope_ctkv"
    out = call("atb::npu_multi_head_latent_attention", *decode(batch, nz), cache_mode=mode)
    assert out.dtype == dtype
    assert_close(out, results(batch))


def test_multi_head_latent_attention_into_a_result() -> None:
    batch = shared(Batch([1, 1], [40, 3], **MLA))
    out = torch.zeros(2, 8, 512).half()
    call("atb::npu_multi_head_latent_attention.out", *decode(batch), output=out)
    assert_close(out, results(batch))


def test_multi_head_latent_attention_with_log_sum_exp() -> None:
    batch = shared(Batch([1, 1], [40, 3], **MLA))
    out, lse = call("atb::npu_multi_head_latent_attention.lse", *decode(batch), True, calc_type="calc_type_ring")
    assert_close(out, results(batch))
    assert lse.shape == (2, 8, 1)
    assert_close(lse[..., 0], stack([sums for _, sums in batch.expected()]))
    into = torch.zeros_like(out), torch.zeros_like(lse)
    call(
        "atb::npu_multi_head_latent_attention.lse_out", *decode(batch), True, calc_type="calc_type_ring",
        output=into[0], lse=into[1],
    )  # fmt: skip
    assert torch.equal(into[0], out)
    assert torch.equal(into[1], lse)


@pytest.mark.parametrize(
    ("given", "shown"),
    [({"cache_mode": "int8_nzcache"}, "int8_nzcache"), ({"calc_type": "calc_type_spec"}, "calc_type_spec")],
)
def test_multi_head_latent_attention_refuses_what_is_not_simulated(given: dict[str, str], shown: str) -> None:
    with pytest.raises(RuntimeError, match=shown):
        torch.ops.atb.npu_multi_head_latent_attention(*decode(shared(Batch([1], [3], **MLA))), **given)


def test_paged_attention_mla() -> None:
    """One cache; the value is the first elements of a token."""
    batch = shared(Batch([1, 1], [40, 3], heads=(8, 1), size=(288, 256)))
    (key, _), table = caches(batch, 16)
    out = torch.zeros(2, 8, 256).half()
    lengths = torch.tensor(batch.keys, dtype=torch.int32)
    arguments = (torch.cat(batch.query), key, 1, 8, batch.scale, table, lengths, 256, out)
    call("atb::_npu_paged_attention_mla", *arguments)
    assert_close(out, results(batch))


@pytest.mark.parametrize("kind", ["none", "per request", "per head"])
def test_paged_attention_v2(kind: str) -> None:
    batch = Batch([1, 1, 1], [40, 3, 17], size=(64, 32))
    (key, value), table = caches(batch, 16)
    mask: Tensor | None = None
    bias: list[Any] = []
    if kind == "per request":
        mask = torch.zeros(3, 1, 40)
        for request in range(3):
            mask[request, :, :request] = -10000
    elif kind == "per head":
        mask = torch.randn(3, 4, 1, 40)
    if mask is not None:
        mask = mask.half()
        bias = [np.broadcast_to(m[..., :n].double().numpy(), (4, 1, n)) for m, n in zip(mask, batch.keys, strict=True)]
    out = torch.zeros(3, 4, 32).half()
    given: dict[str, Any] = {
        "value_cache": value,
        "mask": mask,
        "mask_type": {"none": 0, "per request": 1, "per head": 2}[kind],
    }
    heads: dict[str, Any] = {"num_heads": 4, "num_kv_heads": 2, "scale_value": batch.scale}
    arguments = (torch.cat(batch.query), key, table, batch.keys)
    assert torch.ops.atb._npu_paged_attention_v2_get_workspace(*arguments, **given, **heads, out=out).dim() == 1
    call("atb::_npu_paged_attention_v2.out", *arguments, **given, **heads, out=out)
    assert_close(out, results(batch) if mask is None else stack([o for o, _ in batch.expected(bias=bias)]))


RING: dict[str, Any] = {"heads": (4, 2), "size": (192, 128)}


def ring(batch: Batch) -> tuple[Any, ...]:
    query, key = ([t.contiguous() for t in torch.cat(rows).split([128, 64], -1)] for rows in (batch.query, batch.key))
    lengths = torch.tensor([batch.queries, batch.keys], dtype=torch.int32)
    return (*query, *key, torch.cat(batch.value), torch.ones(512, 512).triu(1).half(), lengths, 4, 2)


@pytest.mark.parametrize("masked", [False, True], ids=["all", "causal"])
def test_ring_mla_over_a_first_part(masked: bool) -> None:
    batch = Batch([5, 3], [5, 3] if masked else [7, 12], dtype=torch.bfloat16, **RING)
    kind = "mask_type_triu" if masked else "no_mask"
    out, lse = call("atb::npu_ring_mla", *ring(batch), mask_type=kind, qk_scale=batch.scale)
    expected = batch.expected(3 if masked else 0)
    assert_close(out, stack([o for o, _ in expected]))
    assert lse.dtype == torch.float32
    assert_close(lse.T, stack([sums for _, sums in expected]))


def test_ring_mla_merges_with_the_parts_before() -> None:
    """The queries see all earlier keys and, causally, their own: as over both together."""
    whole = Batch([5, 3], [12, 9], **RING)
    before, own = Batch([5, 3], [7, 6], **RING), Batch([5, 3], [5, 3], **RING)
    before.query = own.query = whole.query
    for request, count in enumerate(before.keys):
        for name in ("key", "value"):
            tokens = getattr(whole, name)[request]
            getattr(before, name)[request], getattr(own, name)[request] = tokens[:count], tokens[count:]
    out, lse = call("atb::npu_ring_mla", *ring(before), qk_scale=whole.scale)
    given: dict[str, Any] = {"mask_type": "mask_type_triu", "calc_type": "calc_type_default", "qk_scale": whole.scale}
    into = torch.zeros_like(out), torch.zeros_like(lse)
    results = {"output": into[0], "softmax_lse": into[1]}
    call("atb::npu_ring_mla.out", *ring(own), pre_out=out, prev_lse=lse, **given, **results)
    expected = whole.expected(3)
    assert_close(into[0], stack([o for o, _ in expected]))
    assert_close(into[1].T, stack([sums for _, sums in expected]))


def test_ring_mla_refuses_to_merge_with_nothing() -> None:
    with pytest.raises(RuntimeError, match="pre_out, prev_lse"):
        torch.ops.atb.npu_ring_mla(*ring(Batch([2], [2], **RING)), calc_type="calc_type_default")
