# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from ascend_sim.references import limits

from ..calls import call
from ..oracle import as_float64
from ..quant.steps import assert_same_steps, by_token

TOKENS, K, HIDDEN, EXPERTS = 6, 3, 8, 5
V2, QUANT = "npu::npu_moe_init_routing_v2", "npu::npu_moe_init_routing_quant"


def choices() -> torch.Tensor:
    return torch.stack([torch.randperm(EXPERTS)[:K] for _ in range(TOKENS)]).int()


def in_order(experts: torch.Tensor, start: int = 0, end: int = EXPERTS) -> list[int]:
    """Slots by expert, then by number, of the experts in the range."""
    flat = experts.flatten().tolist()
    return [slot for expert in range(start, end) for slot, chosen in enumerate(flat) if chosen == expert]


@pytest.mark.parametrize(("start", "end"), [(0, EXPERTS), (1, 3)])
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_rows_by_expert_of_a_range(start: int, end: int, kind: int) -> None:
    x, experts, scale = torch.randn(TOKENS, HIDDEN), choices(), torch.rand(TOKENS)
    options = {"expert_num": EXPERTS, "active_expert_range": [start, end], "expert_tokens_num_flag": True}
    rows, index, tokens, scales = call(V2, x, experts, scale=scale, expert_tokens_num_type=kind, **options)
    order = in_order(experts, start, end)
    sources = [slot // K for slot in order]
    assert torch.equal(rows[: len(order)], x[sources])
    assert torch.equal(scales[: len(order)], scale[sources])
    assert index.tolist() == [order.index(slot) if slot in order else -1 for slot in range(TOKENS * K)]
    counts = [int((experts == expert).sum()) for expert in range(start, end)]
    if kind == 2:
        pairs = [[expert, count] for expert, count in zip(range(start, end), counts, strict=True) if count]
        assert tokens[: len(pairs)].tolist() == pairs
    else:
        assert tokens.tolist() == (counts if kind == 1 else np.cumsum(counts).tolist())
    _, back, _, _ = call(V2, x, experts, row_idx_type=1, **options)
    assert back[: len(order)].tolist() == order


def test_only_the_active_rows_are_returned() -> None:
    x, experts = torch.randn(TOKENS, HIDDEN), choices()
    rows, index, tokens, _ = call(V2, x, experts, expert_num=EXPERTS, active_num=4)
    assert torch.equal(rows, x[[slot // K for slot in in_order(experts)[:4]]])
    assert len(index) == TOKENS * K
    assert tokens.shape == ()


@pytest.mark.parametrize("rows", [1, EXPERTS])
def test_dynamic_int8(rows: int) -> None:
    x, experts, smooth = torch.randn(TOKENS, HIDDEN), choices(), torch.rand(rows, HIDDEN) + 0.5
    out, _, _, scales = call(V2, x, experts, scale=smooth, expert_num=EXPERTS, quant_mode=1)
    order = in_order(experts)
    chosen = [int(experts.flatten()[slot]) if rows > 1 else 0 for slot in order]
    steps, expected = by_token(as_float64(x)[[slot // K for slot in order]] * as_float64(smooth)[chosen])
    np.testing.assert_allclose(as_float64(scales), expected, rtol=1e-5)
    assert_same_steps(out, steps, 0.02)


@pytest.mark.parametrize("name", [V2, QUANT])
def test_static_int8(name: str) -> None:
    x, experts = torch.randn(TOKENS, HIDDEN), choices()
    parameters = {"scale": torch.tensor([20.0]), "offset": torch.tensor([3.0])}
    out = call(name, x, experts, expert_num=EXPERTS, quant_mode=0, **parameters)[0]
    values = as_float64(x)[[slot // K for slot in in_order(experts)]] * 20 + 3
    assert_same_steps(out, np.clip(np.rint(values), -128, 127), 0.02)


@pytest.mark.parametrize("mode", [2, 3])
@limits.as_family(limits.Family.A5)
def test_microscaling(mode: int) -> None:
    x, experts = torch.randn(TOKENS, 40).bfloat16(), choices()
    out, _, _, scales = call(V2, x, experts, expert_num=EXPERTS, quant_mode=mode)
    elements, expected = torch.ops.npu.npu_dynamic_mx_quant(
        x[[slot // K for slot in in_order(experts)]], dst_type=23 if mode == 2 else 24
    )
    assert torch.equal(out.view(torch.uint8), elements.view(torch.uint8))
    assert torch.equal(scales.view(torch.uint8), expected.view(torch.uint8).flatten(1))


def test_capacity_drops_and_pads() -> None:
    """Expert 0 has three tokens for two rows, expert 1 one, expert 2 none."""
    x, experts = torch.arange(1.0, 5)[:, None].repeat(1, HIDDEN), torch.tensor([[0], [0], [1], [0]], dtype=torch.int32)
    options = {"expert_num": 3, "expert_capacity": 2, "drop_pad_mode": 1}
    rows, index, _, _ = call(V2, x, experts, **options)
    assert rows[..., 0].tolist() == [[1, 2], [3, 0], [0, 0]]
    assert index.tolist() == [0, 1, 2, -1]
    rows, index, _, before, scales = call(QUANT, x, experts, expert_tokens_before_capacity_flag=True, **options)
    assert rows[..., 0].tolist() == [[127, 127], [127, 0], [0, 0]]
    assert index.tolist() == [0, 1, 2, -1]
    assert before.tolist() == [3, 1, 0]
    np.testing.assert_allclose(as_float64(scales) * 127, [1, 2, 3, 0, 0, 0], rtol=1e-6)


@pytest.mark.parametrize("mode", [1, 2])
def test_quant_counts_tokens(mode: int) -> None:
    experts = choices()
    x = torch.randn(TOKENS, HIDDEN)
    rows, index, tokens, _, scales = call(QUANT, x, experts, expert_num=EXPERTS, expert_tokens_num_mode=mode)
    counts = np.bincount(experts.flatten().numpy(), minlength=EXPERTS)
    assert tokens.tolist() == (np.cumsum(counts) if mode == 1 else counts).tolist()
    order = in_order(experts)
    assert index.tolist() == [order.index(slot) for slot in range(TOKENS * K)]
    steps, expected = by_token(as_float64(x)[[slot // K for slot in order]])
    assert_same_steps(rows, steps, 0.02)
    np.testing.assert_allclose(as_float64(scales), expected, rtol=1e-6)


def test_unknown_quantisation_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="quant_mode"):
        torch.ops.npu.npu_moe_init_routing_v2(torch.ones(2, 8), choices()[:2], expert_num=EXPERTS, quant_mode=11)
