"""Head sizes beside the ones that the packed layout takes as they are, against float64."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from vllm.v1.attention.backend import AttentionType

from ascend_sim import instruments
from vllm_ascend.attention.head_size import operator_head_size, queries_per_head
from vllm_ascend.attention.impl import AscendAttentionImpl
from vllm_ascend.attention.metadata import AscendAttentionMetadata

from .paged_oracle import Batch, attention, make_batch

HEADS = 4
TOLERANCE = 3e-2
"""Largest difference of bfloat16 to float64, for values and outputs of magnitude 1."""


def attend(batch: Batch, kv_heads: int, size: int, **options: Any) -> torch.Tensor:
    impl = AscendAttentionImpl(HEADS, size, size**-0.5, kv_heads, **options)
    ends = torch.tensor(batch.query_lens).cumsum(0).tolist()
    metadata = AscendAttentionMetadata(ends[-1], ends, batch.kv_lens, batch.block_table, batch.slots)
    output = torch.full_like(batch.query, 7.0)
    impl.forward(SimpleNamespace(layer_name="0"), batch.query, batch.key, batch.value, batch.cache, metadata, output)
    return output.cpu().double()


@pytest.mark.parametrize("size", [16, 64, 80, 96, 112, 128, 192, 256])
@pytest.mark.parametrize("kv_heads", [HEADS, 2], ids=["mha", "gqa"])
def test_over_pages(size: int, kv_heads: int) -> None:
    batch = make_batch([1, 7, 1, 20], [33, 7, 128, 150], HEADS, kv_heads, size, torch.bfloat16)
    difference = attend(batch, kv_heads, size) - attention(batch, size**-0.5)
    assert difference.abs().max() < TOLERANCE


@pytest.mark.parametrize("size", [32, 64, 72, 80, 96])
@pytest.mark.parametrize("kv_heads", [HEADS, 2], ids=["mha", "gqa"])
def test_in_encoders(size: int, kv_heads: int) -> None:
    lens = [5, 9, 1]
    batch = make_batch(lens, lens, HEADS, kv_heads, size, torch.bfloat16)
    output = attend(batch, kv_heads, size, attn_type=AttentionType.ENCODER_ONLY)
    assert (output - attention(batch, size**-0.5, causal=False)).abs().max() < TOLERANCE


def test_sinks_follow_their_heads() -> None:
    batch = make_batch([1, 5], [9, 5], HEADS, HEADS, 80, torch.bfloat16)
    sinks = torch.linspace(-2, 3, HEADS).bfloat16()
    difference = attend(batch, HEADS, 80, sinks=sinks.npu()) - attention(batch, 80**-0.5, sinks=sinks)
    assert difference.abs().max() < TOLERANCE


def test_usual_sizes_cost_no_copy() -> None:
    batch = make_batch([1, 1], [9, 5], HEADS, HEADS, 128, torch.bfloat16)
    with instruments.counting() as counts:
        attend(batch, HEADS, 128)
    assert counts["op:aten::repeat_interleave.self_int"] == counts["op:aten::copy_"] - 1 == 0  # the result's copy


@pytest.mark.parametrize(
    ("size", "grouped", "expected"),
    [(1, True, 16), (16, True, 16), (72, True, 80), (1, False, 64), (65, False, 128), (129, False, 192)],
)
def test_smallest_size_that_holds_a_head(size: int, grouped: bool, expected: int) -> None:
    assert operator_head_size(size, grouped=grouped) == expected


def test_heads_that_fit_nowhere_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="head size 257: .* at most 256"):
        operator_head_size(257, grouped=True)
    with pytest.raises(NotImplementedError, match="head size 193: .* at most 192"):
        operator_head_size(193, grouped=False)
    with pytest.raises(NotImplementedError, match="head size 72: .* a multiple of 16 up to 256"):
        queries_per_head(72, grouped=True)
    with pytest.raises(NotImplementedError, match="head size 272"):
        queries_per_head(272, grouped=True)
