"""expert_positions, moe_permute and moe_unpermute: a stable sort in plain Python as the oracle."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.ops.moe.expert_positions.plan import plan_positions
from ascend_kernels.ops.moe.moe_permute.plan import plan_rows_of_tokens
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run


def oracle(ids: torch.Tensor, first: int, experts: int) -> tuple[list[int], list[int], list[int]]:
    """Each assignment's row, rows of each expert, where they begin."""
    flat = [expert - first for expert in ids.flatten().tolist()]
    order = sorted((index for index, expert in enumerate(flat) if 0 <= expert < experts), key=lambda index: flat[index])
    positions = [order.index(index) if 0 <= expert < experts else -1 for index, expert in enumerate(flat)]
    counts = [flat.count(expert) for expert in range(experts)]
    return positions, counts, [sum(counts[:expert]) for expert in range(experts + 1)]


def check(actual: tuple[torch.Tensor, ...], ids: torch.Tensor, first: int, experts: int) -> None:
    positions, counts, offsets = oracle(ids, first, experts)
    assert actual[0].shape == ids.shape
    for part, right in zip(actual, (positions, counts, offsets), strict=True):
        assert torch.equal(part.flatten(), torch.tensor(right, dtype=torch.int32))


def random_ids(tokens: int, k: int, experts: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(-1, experts, (tokens, k), generator=torch.Generator().manual_seed(seed), dtype=torch.int32)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestPositions:
    def test_literal_values(self, implementation: str) -> None:
        ids = torch.tensor([[2, 0], [0, 1], [2, 2]])
        positions, counts, offsets = run("expert_positions", implementation, ids, 0, 4)
        assert positions.tolist() == [[3, 0], [1, 2], [4, 5]]
        assert (counts.tolist(), offsets.tolist()) == ([2, 1, 3, 0], [0, 2, 3, 6, 6])

    @pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
    def test_experts_of_this_rank_only(self, implementation: str, dtype: torch.dtype) -> None:
        ids = guarded(random_ids(9, 4, 12).to(dtype))
        check(run("expert_positions", implementation, ids, 3, 5), ids, 3, 5)

    @pytest.mark.parametrize(("tokens", "k", "experts"), [(0, 2, 3), (1, 1, 1), (70, 3, 5), (300, 5, 2)], ids=str)
    def test_blocks_and_experts_of_any_number(self, implementation: str, tokens: int, k: int, experts: int) -> None:
        ids = random_ids(tokens, k, experts)
        check(run("expert_positions", implementation, ids, 0, experts), ids, 0, experts)

    def test_nobody_chose_an_expert_of_this_rank(self, implementation: str) -> None:
        ids = torch.zeros(5, 2, dtype=torch.int32)
        check(run("expert_positions", implementation, ids, 4, 3), ids, 4, 3)

    @settings(max_examples=3, deadline=None)
    @given(tokens=st.integers(1, 90), k=st.integers(1, 4), experts=st.integers(1, 5), first=st.integers(0, 5))
    def test_random_shapes(self, implementation: str, tokens: int, k: int, experts: int, first: int) -> None:
        ids = random_ids(tokens, k, experts + 3)
        check(run("expert_positions", implementation, ids, first, experts), ids, first, experts)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS[:2])
def test_more_experts_than_are_compared_at_a_time(implementation: str) -> None:
    ids = random_ids(30, 3, 66)
    check(run("expert_positions", implementation, ids, 0, 66), ids, 0, 66)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestRows:
    @pytest.mark.parametrize("dtype", [*FLOATS, torch.int8], ids=short_name)
    def test_there_and_back(self, implementation: str, dtype: torch.dtype) -> None:
        x = torch.arange(5 * 33).reshape(5, 33).fmod(100).to(dtype)
        positions = torch.tensor([[0, -1], [2, 5], [-1, -1], [1, 4], [3, -1]], dtype=torch.int32)
        rows = run("moe_permute", implementation, guarded(x), positions, 6)
        assert_close(rows, x[[0, 3, 1, 4, 3, 1]], "exact")
        if dtype.is_floating_point:
            back = run("moe_unpermute", implementation, guarded(rows), positions, None)
            times = torch.tensor([1, 2, 0, 2, 1])[:, None]
            assert_close(back, x.double() * times, "exact")

    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    def test_weights(self, implementation: str, dtype: torch.dtype) -> None:
        y = torch.randn(6, 40, generator=torch.Generator().manual_seed(0)).to(dtype)
        positions = torch.tensor([[5, 0, 3], [-1, 2, -1]], dtype=torch.int32)
        weights = torch.tensor([[0.5, 0.25, 2.0], [float("nan"), 4.0, float("nan")]])
        x = run("moe_unpermute", implementation, y, positions, weights)
        exact = y.double()
        expected = torch.stack([0.5 * exact[5] + 0.25 * exact[0] + 2 * exact[3], 4 * exact[2]])
        assert_close(x, expected, "reduction")

    def test_rows_longer_than_a_tile(self, implementation: str) -> None:
        columns = 20011
        assert plan_rows_of_tokens(ASCEND_910B1, 1, columns, 32).block < columns
        assert plan_rows_of_tokens(cuda_target(132), 1, columns, 32).block < columns
        x, positions = torch.randn(2, columns), torch.tensor([[1], [0]], dtype=torch.int32)
        rows = run("moe_permute", implementation, x, positions, 2)
        assert_close(rows, x.flip(0), "exact")
        assert_close(run("moe_unpermute", implementation, rows, positions, torch.ones(2, 1)), x, "exact")

    @pytest.mark.parametrize("batch", [2, 16, 17, 33])
    def test_a_token_alone_gets_the_same_bits_as_in_a_batch(self, implementation: str, batch: int) -> None:
        generator = torch.Generator().manual_seed(batch)
        y = torch.randn(batch * 3, 37, generator=generator).to(torch.bfloat16)
        positions = torch.randperm(batch * 3, generator=generator).reshape(batch, 3).int()
        weights = torch.rand(batch, 3, generator=generator)
        together = run("moe_unpermute", implementation, y, positions, weights)
        for token in (0, batch - 1):
            alone = run("moe_unpermute", implementation, y, positions[token : token + 1], weights[token : token + 1])
            assert torch.equal(alone[0], together[token])

    @pytest.mark.parametrize(("tokens", "columns"), [(0, 8), (3, 0)], ids=str)
    def test_nothing_to_move(self, implementation: str, tokens: int, columns: int) -> None:
        positions = torch.zeros(tokens, 2, dtype=torch.int32)
        assert run("moe_permute", implementation, torch.empty(tokens, columns), positions, 6).shape == (6, columns)
        assert run("moe_unpermute", implementation, torch.empty(6, columns), positions, None).shape == (tokens, columns)


def test_programs_stay_within_the_grid() -> None:
    assert plan_positions(cuda_target(132), 64 * 70000, 70000).rankers == 65535
    assert plan_positions(cuda_target(132), 64 * 70000, 70000).counters == 65535
    assert plan_rows_of_tokens(cuda_target(132), 70000, 8, 8).programs == 65535
    assert plan_rows_of_tokens(ASCEND_910B1, 70000, 8, 8).programs == 48


def test_operators_are_well_formed() -> None:
    positions = torch.tensor([[1, 0]], dtype=torch.int32)
    opcheck("expert_positions", torch.tensor([[1, 0]]), 0, 2)
    opcheck("moe_unpermute", torch.randn(2, 8), positions, torch.ones(1, 2))
    opcheck("moe_permute", torch.randn(1, 8), positions, 2)


def test_shapes_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match=r"ids of shape \(3,\)"):
        ascend_kernels.expert_positions(torch.zeros(3, dtype=torch.int32), 4)
    with pytest.raises(ValueError, match=r"positions \(3, 2\)"):
        ascend_kernels.moe_permute(torch.zeros(2, 4), torch.zeros(3, 2, dtype=torch.int32))
    with pytest.raises(ValueError, match=r"weights \(2, 1\)"):
        ascend_kernels.moe_unpermute(torch.zeros(2, 4), torch.zeros(2, 2, dtype=torch.int32), torch.ones(2, 1))
