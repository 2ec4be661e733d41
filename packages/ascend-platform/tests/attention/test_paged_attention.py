"""Attention on the device against float64: head layouts, kinds of steps, windows, sinks, sharing, encoder attention."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from vllm.v1.attention.backend import AttentionType

from vllm_ascend.attention.impl import AscendAttentionImpl
from vllm_ascend.attention.metadata import AscendAttentionMetadata

from .paged_oracle import Batch, attention, make_batch

HEADS, SIZE = 8, 64
SCALE = SIZE**-0.5
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2}
"""Largest difference to float64, for values and outputs of magnitude 1: a few units in the last place."""

STEPS = {
    "prefill": ([5, 130, 1], [5, 130, 1]),
    "prefix-hit": ([4, 9], [132, 265]),
    "chunk": ([16], [48]),
    "decode": ([1, 1, 1], [1, 129, 40]),
    "mixed": ([1, 7, 1, 20], [33, 7, 128, 150]),
}


def attend(batch: Batch, kv_heads: int, *, causal: bool = True, **options: Any) -> torch.Tensor:
    impl = AscendAttentionImpl(HEADS, SIZE, SCALE, kv_heads, **options)
    ends = torch.tensor(batch.query_lens).cumsum(0).tolist()
    metadata = AscendAttentionMetadata(ends[-1], ends, batch.kv_lens, batch.block_table, batch.slots, causal)
    output = torch.full_like(batch.query, 7.0)
    layer = SimpleNamespace(layer_name="model.layers.0.self_attn.attn")
    impl.forward(layer, batch.query, batch.key, batch.value, batch.cache, metadata, output)
    return output.cpu().double()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kv_heads", [8, 2, 1], ids=["mha", "gqa", "mqa"])
def test_steps_and_head_layouts(step: str, kv_heads: int) -> None:
    batch = make_batch(*STEPS[step], HEADS, kv_heads, SIZE, torch.bfloat16)
    assert (attend(batch, kv_heads) - attention(batch, SCALE)).abs().max() < TOLERANCE[torch.bfloat16]


def test_half_precision() -> None:
    batch = make_batch(*STEPS["mixed"], HEADS, 2, SIZE, torch.float16)
    assert (attend(batch, 2) - attention(batch, SCALE)).abs().max() < TOLERANCE[torch.float16]


@pytest.mark.parametrize("window", [1, 8, 128, 1000])
@pytest.mark.parametrize("step", ["prefill", "decode", "mixed"])
def test_a_window_counts_the_token_itself(step: str, window: int) -> None:
    batch = make_batch(*STEPS[step], HEADS, 2, SIZE, torch.bfloat16)
    difference = attend(batch, 2, sliding_window=window) - attention(batch, SCALE, window=window)
    assert difference.abs().max() < TOLERANCE[torch.bfloat16]


@pytest.mark.parametrize("step", ["prefill", "decode", "mixed"])
def test_sinks_take_part_of_the_weight(step: str) -> None:
    batch = make_batch(*STEPS[step], HEADS, 2, SIZE, torch.bfloat16)
    sinks = torch.linspace(-2, 3, HEADS).bfloat16()
    difference = attend(batch, 2, sinks=sinks.npu()) - attention(batch, SCALE, sinks=sinks)
    assert difference.abs().max() < TOLERANCE[torch.bfloat16]


def test_new_keys_and_values_are_written_to_their_slots() -> None:
    batch = make_batch(*STEPS["mixed"], HEADS, 2, SIZE, torch.bfloat16)
    attend(batch, 2)
    for half, new in enumerate((batch.key, batch.value)):
        written = batch.cache[half].reshape(-1, 2, SIZE).cpu()[batch.slots.cpu().long()]
        assert torch.equal(written, new.cpu())


def test_a_layer_that_shares_the_cache_writes_nothing() -> None:
    batch = make_batch(*STEPS["decode"], HEADS, 2, SIZE, torch.bfloat16)
    before = batch.cache.clone()
    attend(batch, 2, kv_sharing_target_layer_name="model.layers.0.self_attn.attn")
    assert torch.equal(before.cpu(), batch.cache.cpu())


@pytest.mark.parametrize("window", [None, 4], ids=["full", "window"])
def test_encoder_attention_sees_both_sides(window: int | None) -> None:
    lens = [5, 9, 1]
    batch = make_batch(lens, lens, HEADS, 2, SIZE, torch.bfloat16)
    output = attend(batch, 2, attn_type=AttentionType.ENCODER_ONLY, sliding_window=window)
    if window is None:
        expected = attention(batch, SCALE, causal=False)
    else:
        rows, start = [], 0
        for length, key, value in zip(lens, batch.keys, batch.values):
            for token in range(length):
                span = slice(max(0, token - window + 1), token + window)
                near = Batch(*vars(batch).values())
                near.query, near.query_lens, near.kv_lens = batch.query[start + token][None], [1], [0]
                near.keys, near.values = [key[span]], [value[span]]
                near.kv_lens = [near.keys[0].shape[0]]
                rows.append(attention(near, SCALE))
            start += length
        expected = torch.cat(rows)
    assert (output - expected).abs().max() < TOLERANCE[torch.bfloat16]


def test_a_profile_run_gives_zeros() -> None:
    impl = AscendAttentionImpl(HEADS, SIZE, SCALE, 2)
    output = torch.full((3, HEADS, SIZE), 5.0, device="npu")
    impl.forward(SimpleNamespace(layer_name="x"), output, output, output, output, None, output)
    assert output.abs().max() == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"logits_soft_cap": 30.0}, "cannot cap attention logits"),
        ({"alibi_slopes": [0.5] * HEADS}, "ALiBi"),
        ({"attn_type": AttentionType.ENCODER_DECODER}, "is not supported; decoder and encoder"),
        ({"unheard_of": 1}, "unheard_of"),
    ],
    ids=["soft-cap", "alibi", "cross-attention", "unknown"],
)
def test_what_the_operator_cannot_do_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(NotImplementedError, match=message):
        AscendAttentionImpl(HEADS, SIZE, SCALE, 2, **options)


def test_head_counts_and_sinks_are_checked() -> None:
    with pytest.raises(ValueError, match="8 query heads are no multiple of 3"):
        AscendAttentionImpl(HEADS, SIZE, SCALE, 3)
    with pytest.raises(ValueError, match="4 attention sinks for 8 query heads"):
        AscendAttentionImpl(HEADS, SIZE, SCALE, 2, sinks=torch.zeros(4))
