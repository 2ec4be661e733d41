# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from ..calls import call
from ..oracle import as_float64, assert_close


def test_init_routing_of_the_pages_example() -> None:
    """x rows are .1, .2, .3; token 0 goes to experts 1 and 2, token 1 to 0 and 1, token 2 to 0 and 2."""
    x = torch.tensor([[0.1], [0.2], [0.3]]).repeat(1, 4)
    row_idx = torch.tensor([[0, 3], [1, 4], [2, 5]], dtype=torch.int32)
    experts = torch.tensor([[1, 2], [0, 1], [0, 2]], dtype=torch.int32)
    expanded, index, sorted_experts = call("npu::npu_moe_init_routing", x, row_idx, experts, 3)
    assert torch.equal(expanded, x[[1, 2, 0, 1, 0, 2]])
    assert index.tolist() == [2, 0, 1, 4, 3, 5]
    assert sorted_experts.tolist() == [0, 0, 1, 1, 2, 2]
    half, _, _ = call("npu::npu_moe_init_routing", x, row_idx, experts, 1)
    assert torch.equal(half, x[[1, 2]])


def test_compute_expert_tokens_of_the_pages_example() -> None:
    experts = torch.tensor([0, 0, 0, 1, 1, 2], dtype=torch.int32)
    assert call("npu::npu_moe_compute_expert_tokens", experts, 3).tolist() == [3, 5, 6]
    assert call("npu::npu_moe_compute_expert_tokens", experts, 5).tolist() == [3, 5, 6, 6, 6]


def test_finalize_routing() -> None:
    """The formula of the page, with the row index column by column."""
    tokens, k, hidden, experts = 5, 3, 8, 4
    rows, bias = torch.randn(tokens * k, hidden), torch.randn(experts, hidden)
    skip1, skip2, scales = torch.randn(tokens, hidden), torch.randn(tokens, hidden), torch.rand(tokens, k)
    index = torch.randperm(tokens * k).int()
    chosen = torch.randint(experts, (tokens, k), dtype=torch.int32)
    out = call("npu::npu_moe_finalize_routing", rows, skip1, skip2, bias, scales, index, chosen)
    expected = as_float64(skip1) + as_float64(skip2)
    for i in range(tokens):
        for j in range(k):
            row = as_float64(rows[index[i + j * tokens]]) + as_float64(bias[chosen[i, j]])
            expected[i] += float(scales[i, j]) * row
    assert_close(out, expected)


def test_finalize_routing_row_by_row_with_dropped_choices() -> None:
    """Mode 3: rows [E, C, H], index token by token, -1 for a choice over an expert's capacity."""
    rows = torch.arange(8.0).view(2, 2, 2)
    index = torch.tensor([3, 0, -1, 1], dtype=torch.int32)
    scales = torch.tensor([[1.0, 2.0], [5.0, 0.5]])
    out = call("npu::npu_moe_finalize_routing", rows, None, None, None, scales, index, None, 3, 2)
    assert out.tolist() == [[6 + 2 * 0, 7 + 2 * 1], [0.5 * 2, 0.5 * 3]]


def test_re_routing_orders_by_expert_then_rank() -> None:
    """Rank 0 sent 2, 1, 0 rows for experts 0, 1, 2, rank 1 sent 1, 0, 2."""
    counts = torch.tensor([[2, 1, 0], [1, 0, 2]])
    tokens = torch.arange(6.0).view(6, 1).half()
    scales = torch.arange(6.0)
    rows, moved, index, per_expert = call("npu::npu_moe_re_routing", tokens, counts, per_token_scales=scales)
    assert rows.flatten().tolist() == moved.tolist() == index.tolist() == [0, 1, 3, 2, 4, 5]
    assert per_expert.tolist() == [3, 1, 2]
    assert call("npu::npu_moe_re_routing", tokens, counts, idx_type=1)[2].tolist() == [0, 1, 3, 2, 4, 5]


@pytest.mark.parametrize("mode", [0, 1], ids=["by-rank", "by-token"])
def test_update_expert_as_the_pages_golden(mode: int) -> None:
    """Copies by rank or by token; choices below the threshold times the token's sum, or inactive, are pruned."""
    ranks, experts, tokens, k = 8, 16, 12, 4
    generator = np.random.default_rng(0)
    counts = generator.integers(1, 5, experts)
    table = np.concatenate([counts[:, None], generator.integers(0, 64, (experts, 4))], 1)
    ids = generator.integers(0, experts, (tokens, k))
    scales = -np.sort(-generator.random((tokens, k)), 1)
    threshold, active = generator.random((1, k)) * 0.4, np.arange(tokens) < 7
    for rank in range(ranks):
        chosen, mask = call(
            "npu::npu_moe_update_expert",
            torch.tensor(ids),
            torch.tensor(table, dtype=torch.int32),
            expert_scales=torch.tensor(scales, dtype=torch.float32),
            pruning_threshold=torch.tensor(threshold, dtype=torch.float32),
            active_mask=torch.tensor(active),
            local_rank_id=rank,
            world_size=ranks,
            balance_mode=mode,
        )
        for i in range(tokens):
            for j in range(k):
                copies = counts[ids[i, j]]
                copy = rank // -(-ranks // copies) if mode == 0 else i % copies
                assert chosen[i, j] == table[ids[i, j], 1 + copy]
                assert mask[i, j] == (active[i] and scales[i, j] >= threshold[0, j] * scales[i].sum())
