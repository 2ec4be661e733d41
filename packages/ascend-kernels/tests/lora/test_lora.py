"""lora_shrink and lora_expand: float64 products, token by token, as the oracle."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.ops.lora.lora_shrink.plan import plan_lora
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def shrunk(x: torch.Tensor, a: torch.Tensor, adapters: list[int], scale: float) -> torch.Tensor:
    parts = [
        scale * (a[n].double() @ row) if n >= 0 else row.new_zeros(a.shape[1]) for row, n in zip(x.double(), adapters)
    ]
    return torch.stack(parts)


def expanded(y: torch.Tensor, h: torch.Tensor, b: torch.Tensor, adapters: list[int], offset: int) -> torch.Tensor:
    result = y.double()
    for token, number in enumerate(adapters):
        if number >= 0:
            result[token, offset : offset + b.shape[1]] += b[number].double() @ h[token].double()
    return result


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestLora:
    def test_literal_values(self, implementation: str) -> None:
        x, a = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[[1.0, 0.0]], [[1.0, 10.0]]])
        h = run("lora_shrink", implementation, x, a, torch.tensor([1, -1]), 2.0)
        assert h.tolist() == [[42.0], [0.0]]
        y = torch.ones(2, 3)
        run("lora_expand", implementation, y, h + 1, torch.tensor([[[5.0]], [[2.0]]]), torch.tensor([1, -1]), 1)
        assert y.tolist() == [[1.0, 87.0, 1.0], [1.0, 1.0, 1.0]]

    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize(("columns", "rank"), [(1, 1), (33, 3), (700, 20)], ids=str)
    def test_ranks_of_any_number(self, implementation: str, columns: int, rank: int, dtype: torch.dtype) -> None:
        x, a, b = (
            rows(4, columns, dtype=dtype),
            rows(3, rank, columns, dtype=dtype),
            rows(3, columns, rank, dtype=dtype),
        )
        adapters = [2, -1, 0, 2]
        numbers = torch.tensor(adapters, dtype=torch.int32)
        h = run("lora_shrink", implementation, guarded(x), a, numbers, 0.5)
        assert_close(h, shrunk(x, a, adapters, 0.5), "reduction")
        y = rows(4, columns + 5, dtype=dtype, seed=1)
        expected = expanded(y, h, b, adapters, 2)
        run("lora_expand", implementation, y, h, b, numbers, 2)
        assert_close(y, expected, "reduction")

    def test_a_rank_larger_than_a_slice(self, implementation: str) -> None:
        rank, columns = 21, 600
        assert min(plan_lora(target, 1, rank, columns).slices for target in (ASCEND_910B1, cuda_target(132))) > 1
        assert plan_lora(ASCEND_910B1, 1, 3, 515).columns < 515
        x, a, b = rows(2, columns), rows(1, rank, columns), rows(1, 3, 515)
        assert_close(
            run("lora_shrink", implementation, x, a, torch.tensor([0, 0]), 1.0), shrunk(x, a, [0, 0], 1.0), "reduction"
        )
        y, h = rows(1, 3), rows(1, 515, seed=1)
        expected = expanded(y, h, b, [0], 0)
        run("lora_expand", implementation, y, h, b, torch.tensor([0]), 0)
        assert_close(y, expected, "reduction")

    def test_no_tokens_and_no_rank(self, implementation: str) -> None:
        none = torch.empty(0, dtype=torch.int32)
        assert run("lora_shrink", implementation, rows(0, 8), rows(2, 4, 8), none, 1.0).shape == (0, 4)
        y, before = rows(0, 8), rows(2, 8)
        run("lora_expand", implementation, y, rows(0, 4), rows(2, 8, 4), none, 0)
        after = before.clone()
        run("lora_expand", implementation, after, rows(2, 0), rows(2, 8, 0), torch.tensor([0, 1]), 0)
        assert torch.equal(after, before)

    @settings(max_examples=3, deadline=None)
    @given(tokens=st.integers(1, 9), columns=st.integers(1, 90), rank=st.integers(1, 40))
    def test_random_shapes(self, implementation: str, tokens: int, columns: int, rank: int) -> None:
        x, a = rows(tokens, columns), rows(2, rank, columns)
        adapters = [number % 3 - 1 for number in range(tokens)]
        h = run("lora_shrink", implementation, x, a, torch.tensor(adapters), 1.0)
        assert_close(h, shrunk(x, a, adapters, 1.0), "reduction")


def test_programs_stay_within_the_grid() -> None:
    assert plan_lora(cuda_target(132), 70000, 16, 4096).programs == 65535
    assert plan_lora(ASCEND_910B1, 70000, 16, 4096).programs == 48


def test_operators_are_well_formed() -> None:
    adapters = torch.tensor([1, -1, 0])
    opcheck("lora_shrink", rows(3, 8), rows(2, 4, 8), adapters, 1.0)
    opcheck("lora_expand", rows(3, 8), rows(3, 4), rows(2, 6, 4), adapters, 2)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("lora_shrink", {"a": torch.ones(2, 4, 7)}, r"a \(2, 4, 7\)"),
        ("lora_shrink", {"adapters": torch.zeros(4, dtype=torch.int32)}, r"adapters \(4,\)"),
        ("lora_shrink", {"a": torch.ones(2, 8, 4).mT}, "must be contiguous"),
        ("lora_expand", {"offset": 3}, "6 columns from 3 and y has 8"),
        ("lora_expand", {"h": torch.ones(3, 5)}, r"h \(3, 5\)"),
        ("lora_expand", {"y": torch.ones(8, 3).t()}, "neighbours"),
    ],
    ids=["columns", "adapters", "strides", "offset", "rank", "y"],
)
def test_what_does_not_belong_together_is_refused(name: str, change: dict[str, Any], message: str) -> None:
    adapters = torch.zeros(3, dtype=torch.int32)
    shrink = {"x": torch.ones(3, 8), "a": torch.ones(2, 4, 8), "adapters": adapters}
    expand = {"y": torch.ones(3, 8), "h": torch.ones(3, 4), "b": torch.ones(2, 6, 4), "adapters": adapters}
    with pytest.raises(ValueError, match=message):
        getattr(ascend_kernels, name)(**((shrink if name == "lora_shrink" else expand) | change))
