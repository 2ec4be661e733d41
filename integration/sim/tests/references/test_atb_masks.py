# SPDX-License-Identifier: Apache-2.0
"""Self attention of the Ascend Transformer Boost library with its kinds of masks, against the vendor's goldens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from .calls import call
from .fia_cases import Batch
from .oracle import assert_close
from .test_atb_attention import caches, results

SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])


def lengths(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def packed(batch: Batch) -> list[Tensor]:
    return [torch.cat(t) for t in (batch.query, batch.key, batch.value)]


def compressed(size: int, fractal: bool = False) -> Tensor:
    mask = torch.ones(size, size).triu(1).mul(-10000).half()
    return mask.unflatten(1, (-1, 16)).transpose(0, 1).contiguous()[None] if fractal else mask


def biased(batch: Batch) -> np.ndarray:
    """The vendor's golden: slopes * (j - i) added to the scores of the keys at j up to the query's position i."""
    bias = []
    for queries, keys in zip(batch.queries, batch.keys, strict=True):
        distance = np.arange(keys)[None] - np.arange(keys - queries, keys)[:, None]
        bias.append(SLOPES.numpy()[:, None, None] * distance)
    return np.concatenate([out for out, _ in batch.expected(3, bias=bias)])


@pytest.mark.parametrize("fractal", [False, True], ids=["nd", "nz"])
def test_flash_attention_v3_with_a_compressed_mask(fractal: bool) -> None:
    batch = Batch([6, 1, 4], [6, 1, 4], dtype=torch.bfloat16)
    out = torch.zeros(11, 4, 64).bfloat16()
    mask = compressed(2048, fractal).bfloat16()
    call("atb::_npu_flash_attention_v3", *packed(batch), mask, lengths(batch.queries), batch.scale, 4, 2, out=out)
    assert_close(out, results(batch, 3))


@pytest.mark.parametrize("size", [128, 512, 2048])
def test_flash_attention_v2_with_a_compressed_mask(size: int) -> None:
    batch = Batch([6, 4], [6, 4])
    out = torch.zeros(10, 4, 64).half()
    heads: dict[str, Any] = {"num_heads": 4, "num_kv_heads": 2, "scale_value": batch.scale}
    mask = compressed(size)
    call("atb::_npu_flash_attention_v2.out", *packed(batch), batch.queries, mask=mask, mask_type=3, **heads, out=out)
    assert_close(out, results(batch, 3))


def test_flash_attention_v2_with_slopes() -> None:
    """As the vendor's test gives them: negated, with a mask of distances that the scores fall by."""
    batch = Batch([6, 1, 4], [6, 1, 4])
    out = torch.zeros(11, 4, 64).half()
    distance = torch.arange(256)
    mask = (distance[:, None] - distance[None] + torch.ones(256, 256).triu(1) * 60000).half()
    given: dict[str, Any] = {"mask": mask, "slopes": -SLOPES, "mask_type": 4}
    heads: dict[str, Any] = {"num_heads": 4, "num_kv_heads": 2, "scale_value": batch.scale}
    call("atb::_npu_flash_attention_v2.out", *packed(batch), batch.queries, **given, **heads, out=out)
    assert_close(out, biased(batch))


def test_flash_attention_v2_with_a_mask_per_head() -> None:
    batch = Batch([5, 5], [5, 5])
    out = torch.zeros(10, 4, 64).half()
    distance = torch.arange(5)[None] - torch.arange(5)[:, None]
    mask = (SLOPES[:, None, None] * distance + torch.ones(5, 5).triu(1) * -10000).half()
    heads: dict[str, Any] = {"num_heads": 4, "num_kv_heads": 2, "scale_value": batch.scale}
    call("atb::_npu_flash_attention_v2.out", *packed(batch), batch.queries, mask=mask, mask_type=2, **heads, out=out)
    assert_close(out, biased(batch))


def test_flash_attention_v2_refuses_an_unknown_mask_type() -> None:
    batch = Batch([2], [2])
    with pytest.raises(RuntimeError, match="mask_type"):
        torch.ops.atb._npu_flash_attention_v2(
            *packed(batch), [2], mask=compressed(128), mask_type=7, num_heads=4, num_kv_heads=2,
            out=torch.zeros(2, 4, 64).half(),
        )  # fmt: skip


def test_flash_attention_unpad_v2() -> None:
    batch = Batch([6, 4], [6, 4])
    out = torch.zeros(10, 4, 64).half()
    arguments = (*packed(batch), lengths(batch.queries), batch.scale, 4, 2)
    call("atb::_npu_flash_attention_unpad_v2", *arguments, kernel_type=1, out=out)
    assert_close(out, results(batch))


@pytest.mark.parametrize("slopes", [False, True], ids=["causal", "slopes"])
def test_flash_attention_prefix(slopes: bool) -> None:
    batch = Batch([5, 1, 3], [21, 9, 3])
    (key, value), table = caches(batch, 16)
    out = torch.zeros(9, 4, 64).half()
    given: dict[str, Any] = {"slopes": -SLOPES, "mask_type": 4} if slopes else {"mask_type": 3}
    heads: dict[str, Any] = {"num_heads": 4, "num_kv_heads": 2, "scale_value": batch.scale}
    call(
        "atb::_npu_flash_attention_prefix_v2.out", torch.cat(batch.query), key, value, table, compressed(128),
        batch.queries, batch.keys, **given, **heads, out=out,
    )  # fmt: skip
    assert_close(out, biased(batch) if slopes else results(batch, 3))


@pytest.mark.parametrize("kind", [None, "mask_type_norm_compress", "mask_type_alibi_compress"])
@pytest.mark.parametrize("flat", [False, True], ids=["TND", "TH"])
def test_self_attention_prefix_encoder(kind: str | None, flat: bool) -> None:
    batch = Batch([5, 1, 3], [21, 9, 3], dtype=torch.bfloat16)
    (key, value), table = caches(batch, 16)
    given: dict[str, Any] = {} if kind is None else {"mask": compressed(512).bfloat16(), "mask_type": kind}
    alibi = kind == "mask_type_alibi_compress"
    query = torch.cat(batch.query)
    query = query.flatten(1) if flat else query
    out = call(
        "atb::npu_self_attention_prefix_encoder", query, key, value, table, batch.queries, batch.keys,
        4, batch.scale, 2, **given, slopes=-SLOPES if alibi else None,
    )  # fmt: skip
    assert_close(out, (biased(batch) if alibi else results(batch, 3)).reshape(query.shape))


def test_flash_attention_qlens() -> None:
    batch = Batch([5, 1, 3], [150, 9, 3])
    (key, value), table = caches(batch, 128)
    out = torch.zeros(9, 4, 64).half()
    call(
        "atb::_npu_flash_attention_qlens", torch.cat(batch.query), key, value, table, compressed(128),
        lengths(batch.queries), lengths(batch.keys), 2, 4, batch.scale, out,
    )  # fmt: skip
    assert_close(out, results(batch, 3))


def test_splitfuse_v2() -> None:
    batch = Batch([5, 1, 3], [21, 9, 3], dtype=torch.bfloat16)
    (key, value), table = caches(batch, 16)
    out = torch.zeros(9, 4, 64).bfloat16()
    call(
        "atb::_npu_paged_attention_splitfuse_v2", torch.cat(batch.query), key, value, table, lengths(batch.keys),
        compressed(2048).bfloat16(), lengths(batch.queries), 2, 4, batch.scale, out=out,
    )  # fmt: skip
    assert_close(out, results(batch, 3))
