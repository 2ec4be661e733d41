# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from .fia_cases import COMPRESSED, Batch, stack
from .oracle import assert_close

prompt = torch.ops.npu.npu_prompt_flash_attention
incre = torch.ops.npu.npu_incre_flash_attention


def options(batch: Batch) -> dict[str, float]:
    return {"num_heads": batch.heads[0], "num_key_value_heads": batch.heads[1], "scale_value": batch.scale}


@pytest.mark.parametrize("mode", [0, 2, 3, 4])
def test_prompt_sparse_modes(mode: int) -> None:
    batch = Batch([5, 5], [7, 7])
    tensors, _ = batch.padded("BNSD")
    out = prompt(
        **tensors, **options(batch), input_layout="BNSD", sparse_mode=mode, pre_tokens=2, next_tokens=1,
        atten_mask=COMPRESSED if mode else None,
    )  # fmt: skip
    expected = [o for o, _ in (batch.expected(mode, 2, 1) if mode else batch.expected())]
    assert_close(out, stack(expected, 5).transpose(0, 2, 1, 3))


def test_prompt_with_position_bias_and_mask() -> None:
    batch = Batch([5, 5], [7, 7])
    hidden = np.random.default_rng(0).random((2, 5, 7)) < 0.3
    hidden[..., 0] = False
    bias = torch.randn(1, 4, 5, 7).half()
    tensors, _ = batch.padded("BSH")
    out = prompt(
        **tensors, **options(batch), pse_shift=bias, atten_mask=torch.from_numpy(hidden)[:, None], next_tokens=65535
    )
    expected = batch.expected(masks=list(hidden), bias=bias[0].double().numpy())
    assert_close(out, stack([o for o, _ in expected], 5).reshape(2, 5, -1))


def test_prompt_mask_keeps_to_next_tokens_whose_default_is_0() -> None:
    batch = Batch([5, 5], [5, 5])
    tensors, _ = batch.padded("BSND")
    out = prompt(**tensors, **options(batch), input_layout="BSND", atten_mask=torch.zeros(5, 5).bool())
    assert_close(out, stack([o for o, _ in batch.expected(2)], 5))


def test_prompt_packed() -> None:
    batch = Batch([3, 2], [3, 4])
    tensors, lists = batch.packed()
    assert_close(
        prompt(**tensors, **lists, **options(batch), input_layout="TND"), stack([o for o, _ in batch.expected()])
    )


@pytest.mark.parametrize("layout", ["BSH", "BSND", "BNSD"])
def test_incre_over_padded_keys(layout: str) -> None:
    batch = Batch([1, 1], [4, 9])
    tensors, lists = batch.padded(layout)
    out = incre(**tensors, **options(batch), input_layout=layout, actual_seq_lengths=lists["actual_seq_lengths_kv"])
    whole = stack([o for o, _ in batch.expected()], 1)
    assert_close(out, {"BSH": whole.reshape(2, 1, -1), "BSND": whole, "BNSD": whole.transpose(0, 2, 1, 3)}[layout])


def test_incre_over_pages() -> None:
    batch = Batch([1, 1], [20, 9])
    caches, table = batch.pages(16)
    out = incre(
        torch.stack(batch.query).flatten(2), **caches, **options(batch), block_table=table, block_size=16,
        actual_seq_lengths=batch.keys,
    )  # fmt: skip
    assert_close(out, stack([o for o, _ in batch.expected()], 1).reshape(2, 1, -1))


def test_refusals_name_operator_and_argument() -> None:
    tensors, _ = Batch([2], [2]).padded("BSND")
    with pytest.raises(
        RuntimeError, match="npu_incre_flash_attention: query's sequence length is 2; the hardware allows 1"
    ):
        incre(**tensors, num_heads=4, num_key_value_heads=2, input_layout="BSND")
    with pytest.raises(NotImplementedError, match="npu_prompt_flash_attention: quant_scale2=given is not simulated"):
        prompt(**tensors, num_heads=4, num_key_value_heads=2, input_layout="BSND", quant_scale2=torch.ones(1))
