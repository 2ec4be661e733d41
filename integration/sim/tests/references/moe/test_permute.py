# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from ..calls import call
from ..oracle import as_float64, assert_close


def test_permute_of_the_pages_example() -> None:
    """Experts 0 1, 1 0, 0 2, 2 0: expert 0 has tokens 0, 1, 2, 3, expert 1 tokens 0, 1 and expert 2 tokens 2, 3."""
    tokens = torch.tensor([[1.0, 1], [2, 2], [3, 3], [4, 4]]).half()
    indices = torch.tensor([[0, 1], [1, 0], [0, 2], [2, 0]])
    permuted, index = call("npu::npu_moe_token_permute", tokens, indices)
    assert permuted[:, 0].tolist() == [1, 2, 3, 4, 1, 2, 3, 4]
    assert index.tolist() == [0, 4, 5, 1, 2, 6, 7, 3]
    for i, row in enumerate(index.tolist()):
        assert torch.equal(permuted[row], tokens[i // 2])


@pytest.mark.parametrize(("wanted", "rows"), [(None, 8), (0, 8), (3, 3), (100, 8), (-2, 6)])
def test_permute_keeps_the_first_rows(wanted: int | None, rows: int) -> None:
    tokens = torch.randn(4, 6)
    indices = torch.randint(5, (4, 2))
    permuted, index = call("npu::npu_moe_token_permute", tokens, indices, wanted)
    whole, _ = call("npu::npu_moe_token_permute", tokens, indices)
    assert torch.equal(permuted, whole[:rows])
    assert len(index) == 8


def test_unpermute_of_the_pages_example() -> None:
    permuted = torch.tensor([[1.0, 1], [2, 2], [3, 3], [4, 4], [1, 1], [2, 2], [3, 3], [4, 4]]).half()
    index = torch.tensor([0, 4, 5, 1, 2, 6, 7, 3], dtype=torch.int32)
    out = call("npu::npu_moe_token_unpermute", permuted, index, torch.full((4, 2), 0.5).half())
    assert out.tolist() == [[1, 1], [2, 2], [3, 3], [4, 4]]
    assert call("npu::npu_moe_token_unpermute", permuted, index)[:, 0].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]


def test_unpermute_weighs_each_choice() -> None:
    permuted, probs = torch.randn(12, 5), torch.rand(4, 3)
    index = torch.randperm(12).int()
    rows = as_float64(permuted)[index.numpy()].reshape(4, 3, 5)
    expected = (rows * as_float64(probs)[..., None]).sum(1)
    assert_close(call("npu::npu_moe_token_unpermute", permuted, index, probs), expected)
    out, saved = call("npu::_npu_moe_token_unpermute", permuted, index, probs)
    assert_close(out, expected)
    assert torch.equal(saved, permuted)


def test_unpermute_refuses_padding() -> None:
    with pytest.raises(RuntimeError, match=r"padded_mode, restore_shape is \(True, None\)"):
        torch.ops.npu.npu_moe_token_unpermute(torch.ones(1, 1), torch.zeros(1, dtype=torch.int32), None, True)


ROUTING = torch.tensor([[1, 0, 1], [0, 1, 1], [1, 1, 0], [1, 0, 1]], dtype=torch.int8)


def test_permute_with_routing_map() -> None:
    """Expert 0 has tokens 0, 2, 3, expert 1 tokens 1, 2, expert 2 tokens 0, 1, 3."""
    tokens, probs = torch.randn(4, 6).bfloat16(), torch.rand(4, 3)
    rows, weights, index = call(
        "npu::npu_moe_token_permute_with_routing_map", tokens, ROUTING, probs=probs, num_out_tokens=8
    )
    source, expert = [0, 2, 3, 1, 2, 0, 1, 3], [0, 0, 0, 1, 1, 2, 2, 2]
    assert torch.equal(rows, tokens[source])
    assert torch.equal(weights, probs[source, expert])
    for i, row in enumerate(index.tolist()):
        assert torch.equal(rows[row], tokens[i // 2])


def test_permute_with_routing_map_refuses_another_number() -> None:
    with pytest.raises(RuntimeError, match="num_out_tokens is 12; the hardware allows 8, the set elements"):
        torch.ops.npu.npu_moe_token_permute_with_routing_map(torch.randn(4, 2), ROUTING, num_out_tokens=12)


def test_permute_with_routing_map_drops_and_pads() -> None:
    """Two rows an expert: its first tokens, and for want of them the first that are not its own."""
    tokens, probs = torch.randn(4, 6), torch.rand(4, 3)
    routing = torch.tensor([[1, 0, 1], [0, 1, 1], [1, 0, 0], [1, 0, 0]]).bool()
    rows, weights, index = call(
        "npu::npu_moe_token_permute_with_routing_map",
        tokens,
        routing,
        probs=probs,
        num_out_tokens=6,
        drop_and_pad=True,
    )
    assert index.tolist() == [0, 2, 1, 0, 0, 1]
    assert torch.equal(rows, tokens[index])
    assert torch.equal(weights, probs[index, [0, 0, 1, 1, 2, 2]])


@pytest.mark.parametrize("with_probs", [True, False], ids=["probs", "plain"])
@pytest.mark.parametrize("padded", [True, False], ids=["padded", "dropless"])
def test_unpermute_with_routing_map_undoes_permute(with_probs: bool, padded: bool) -> None:
    tokens, probs = torch.randn(4, 6), torch.rand(4, 3)
    rows, _, index = torch.ops.npu.npu_moe_token_permute_with_routing_map(
        tokens, ROUTING, num_out_tokens=6 if padded else 8, drop_and_pad=padded
    )
    out = call(
        "npu::npu_moe_token_unpermute_with_routing_map",
        rows,
        index,
        [4, 6],
        probs=probs if with_probs else None,
        routing_map=ROUTING if with_probs else None,
        drop_and_pad=padded,
    )
    chosen = ROUTING.numpy().astype(bool)
    if padded:  # two rows an expert: of experts 0 and 2 the third token is dropped
        chosen[3, [0, 2]] = False
    factors = np.where(chosen, as_float64(probs) if with_probs else 1.0, 0.0).sum(1)
    assert_close(out, as_float64(tokens) * factors[:, None])


def test_unpermute_with_routing_map_skips_unused_choices() -> None:
    index = torch.tensor([0, -1, 2, 1], dtype=torch.int32)
    rows = torch.tensor([[1.0], [2.0], [4.0], [8.0]])
    out = call("npu::npu_moe_token_unpermute_with_routing_map", rows, index, [2, 1])
    assert out.tolist() == [[1.0], [6.0]]
