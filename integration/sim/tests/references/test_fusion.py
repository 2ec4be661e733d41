# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from .fia_cases import COMPRESSED, Batch, stack
from .oracle import assert_close

fusion = torch.ops.npu.npu_fusion_attention


@pytest.mark.parametrize("mode", [0, 2, 3, 4])
@pytest.mark.parametrize("layout", ["BSH", "SBH", "BSND", "BNSD"])
def test_padded_layouts(layout: str, mode: int) -> None:
    batch = Batch([4, 4], [6, 6], dtype=torch.float32)
    tensors, _ = batch.padded("BSND")
    arrange = {
        "BSND": lambda t: t,
        "BSH": lambda t: t.flatten(2),
        "SBH": lambda t: t.flatten(2).transpose(0, 1).contiguous(),
        "BNSD": lambda t: t.transpose(1, 2).contiguous(),
    }[layout]
    out, top, total, *_ = fusion(
        **{n: arrange(t) for n, t in tensors.items()}, head_num=4, input_layout=layout, scale=batch.scale,
        sparse_mode=mode, pre_tockens=2, next_tockens=1, atten_mask=COMPRESSED if mode else None,
    )  # fmt: skip
    expected = batch.expected(mode, 2, 1) if mode else batch.expected()
    assert_close(out, arrange(torch.from_numpy(stack([o for o, _ in expected], 4))).numpy())
    assert top.shape == total.shape == (2, 4, 4, 8)
    lse = stack([s for _, s in expected], 4).transpose(0, 2, 1)
    assert_close(top[..., 0] + total[..., 0].log(), lse)


def test_the_pages_band_example() -> None:
    """The page hides above next_tockens and below pre_tockens with triu and tril of ones."""
    batch = Batch([8], [8], dtype=torch.float32)
    hidden = np.triu(np.ones((8, 8)), k=1 + 1) + np.tril(np.ones((8, 8)), k=-3 - 1)
    tensors, _ = batch.padded("BNSD")
    out, *_ = fusion(
        **tensors, head_num=4, input_layout="BNSD", scale=batch.scale, pre_tockens=3, next_tockens=1,
        atten_mask=torch.from_numpy(hidden).bool().expand(1, 4, 8, 8).contiguous(),
    )  # fmt: skip
    expected = stack([o for o, _ in batch.expected(masks=[hidden])], 8)
    assert_close(out, expected.transpose(0, 2, 1, 3))


def test_packed_with_requests_that_take_no_part() -> None:
    """The page: lengths 2, 3, 4 and two more requests left out are given as [2, 5, 9, 0, 0]."""
    batch = Batch([2, 3, 4], [2, 3, 4], dtype=torch.float32)
    tensors, _ = batch.packed()
    out, top, _, *_ = fusion(
        **tensors, head_num=4, input_layout="TND", scale=batch.scale, actual_seq_qlen=[2, 5, 9, 0, 0],
        actual_seq_kvlen=[2, 5, 9, 0, 0], sparse_mode=3, atten_mask=COMPRESSED,
    )  # fmt: skip
    assert_close(out, stack([o for o, _ in batch.expected(3)]))
    assert top.shape == (9, 4, 8)


def test_position_bias_is_scaled() -> None:
    """softmax(scale * (pse + q k^T)): the bias is added before scaling."""
    batch = Batch([4], [4], dtype=torch.float32)
    pse = torch.randn(1, 4, 4, 4)
    tensors, _ = batch.padded("BSND")
    out, *_ = fusion(**tensors, head_num=4, input_layout="BSND", scale=batch.scale, pse=pse)
    assert_close(out, stack([o for o, _ in batch.expected(bias=pse[0].double().numpy() * batch.scale)], 4))


def test_without_a_mask_the_sparse_mode_does_nothing() -> None:
    batch = Batch([4], [4], dtype=torch.float32)
    tensors, _ = batch.padded("BSND")
    out, *_ = fusion(**tensors, head_num=4, input_layout="BSND", scale=batch.scale, sparse_mode=3)
    assert_close(out, stack([o for o, _ in batch.expected()], 4))


def test_dropout_is_not_simulated() -> None:
    tensors, _ = Batch([4], [4]).padded("BSND")
    with pytest.raises(NotImplementedError, match=r"npu_fusion_attention: keep_prob=0\.5 is not simulated"):
        fusion(**tensors, head_num=4, input_layout="BSND", keep_prob=0.5)
