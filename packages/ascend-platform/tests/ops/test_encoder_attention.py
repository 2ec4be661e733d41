"""Attention of vision encoders against float64."""

from __future__ import annotations

import pytest
import torch
from vllm.config import VllmConfig, set_current_vllm_config

from ascend_sim import instruments
from vllm_ascend.ops.encoder_attention import AscendMMEncoderAttention, sequence_ends

TOLERANCE = 3e-2
"""Largest difference of bfloat16 to float64, for values and outputs of magnitude 1."""


def layer(heads: int, size: int, kv_heads: int) -> AscendMMEncoderAttention:
    with set_current_vllm_config(VllmConfig()):
        return AscendMMEncoderAttention(heads, size, num_kv_heads=kv_heads)


def expected(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """Attention of packed ``[tokens, heads, size]`` sequences, each on its own, in float64."""
    repeats = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    outputs = []
    for q, k, v in zip(*(it.double().split(lengths) for it in (query, key, value)), strict=True):
        weights = torch.einsum("qhd,khd->hqk", q, k) / query.shape[-1] ** 0.5
        outputs.append(torch.einsum("hqk,khd->qhd", weights.softmax(-1), v))
    return torch.cat(outputs)


@pytest.mark.parametrize("size", [16, 64, 72, 80], ids="D{}".format)
@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2)], ids=["mha", "gqa"])
@pytest.mark.parametrize("merged", [False, True], ids=["heads", "merged"])
def test_sequences_attend_to_themselves(size: int, heads: int, kv_heads: int, merged: bool) -> None:
    torch.manual_seed(0)
    lengths = [4, 16, 1]
    made = [torch.randn(1, sum(lengths), count, size).bfloat16() for count in (heads, kv_heads, kv_heads)]
    inputs = [it.flatten(2).npu() if merged else it.npu() for it in made]
    # Windows without patches repeat an end.
    ends = torch.tensor([0, 4, 4, 20, 21, 21], dtype=torch.int32, device="npu")
    output = layer(heads, size, kv_heads)(*inputs, cu_seqlens=ends)
    assert output.shape == inputs[0].shape
    difference = output.view(-1, heads, size).cpu().double() - expected(*(it[0] for it in made), lengths)
    assert difference.abs().max() < TOLERANCE


def test_rows_of_a_batch_are_sequences() -> None:
    torch.manual_seed(0)
    made = [torch.randn(3, 5, 2, 64).bfloat16() for _ in range(3)]
    output = layer(2, 64, 2)(*(it.npu() for it in made))
    difference = output.flatten(0, 1).cpu().double() - expected(*(it.flatten(0, 1) for it in made), [5, 5, 5])
    assert difference.abs().max() < TOLERANCE


def test_lengths_are_read_from_the_device_once() -> None:
    ends = torch.tensor([0, 3, 5], dtype=torch.int32, device="npu")
    assert sequence_ends(ends) == [3, 5]
    with instruments.counting() as counts:
        assert sequence_ends(ends) == [3, 5]
    assert not counts
    ends.copy_(torch.tensor([0, 1, 5], dtype=torch.int32))
    assert sequence_ends(ends) == [1, 5]


def test_lengths_made_in_inference_mode_are_read_once_too() -> None:
    """As vision towers of the Qwen family make them in serving."""
    with torch.inference_mode():
        ends = torch.tensor([0, 3, 5], dtype=torch.int32, device="npu")
    assert sequence_ends(ends) == [3, 5]
    with instruments.counting() as counts:
        assert sequence_ends(ends) == [3, 5]
    assert not counts
