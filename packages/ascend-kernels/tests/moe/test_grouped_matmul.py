"""grouped_matmul: products of float64 matrices, expert by expert, as the oracle."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.ops.moe.grouped_matmul.plan import plan_grouped
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def integers(low: int, high: int, *shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(seed), dtype=torch.int8)


def oracle(x: torch.Tensor, weight: torch.Tensor, offsets: list[int]) -> torch.Tensor:
    """float64 ``[rows, N]``."""
    parts = [x[begin:end].double() @ weight[e].double() for e, (begin, end) in enumerate(pairwise(offsets))]
    return torch.cat(parts)


def gated(product: torch.Tensor, alpha: float = 1.0, up_bias: float = 0.0, limit: float = 0.0) -> torch.Tensor:
    gate, up = product.chunk(2, -1)
    if limit:
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate * torch.sigmoid(alpha * gate) * (up + up_bias)


def call(
    implementation: str, x: torch.Tensor, weight: torch.Tensor, offsets: list[int], **options: Any
) -> torch.Tensor:
    return run(
        "grouped_matmul", implementation, x, weight, torch.tensor(offsets, dtype=torch.int32), options.get("x_scale"),
        options.get("weight_scale"), options.get("bias"), options.get("int4", False), options.get("swiglu", False),
        options.get("alpha", 1.0), options.get("up_bias", 0.0), options.get("limit", 0.0),
        options.get("dtype", torch.float32),
    )  # fmt: skip


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestGroupedMatmul:
    def test_literal_values(self, implementation: str) -> None:
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        weight = torch.tensor([[[1.0], [10.0]], [[2.0], [0.0]], [[0.0], [1.0]]])
        assert call(implementation, x, weight, [0, 1, 1, 3]).tolist() == [[21.0], [4.0], [6.0]]

    def test_limits_of_swiglu_hold_for_every_expert(self, implementation: str) -> None:
        x, weight = rows(9, 16) * 3, rows(2, 16, 12, seed=1)
        form = {"alpha": 1.702, "up_bias": 1.0, "limit": 7.0}
        y = call(implementation, x, weight, [0, 4, 9], swiglu=True, **form)
        exact = oracle(x, weight, [0, 4, 9])
        assert exact.abs().max() > 7
        assert_close(y, gated(exact, **form), "matmul")

    @pytest.mark.parametrize("swiglu", [False, True], ids=["plain", "swiglu"])
    def test_int8_times_int8_is_exact_before_it_is_scaled(self, implementation: str, swiglu: bool) -> None:
        x, weight = integers(-127, 127, 20, 70), integers(-127, 127, 3, 70, 34, seed=1)
        # Powers of two lose nothing, so that only int32 sums can.
        scales = {
            "x_scale": 2.0 ** -integers(0, 3, 20).float(),
            "weight_scale": 2.0 ** -integers(14, 15, 3, 1, 34).float(),
        }
        y = call(implementation, x, weight, [0, 7, 7, 20], swiglu=swiglu, **scales)
        exact = oracle(x * scales["x_scale"].double()[:, None], weight * scales["weight_scale"].double(), [0, 7, 7, 20])
        assert_close(y, gated(exact) if swiglu else exact, "reduction")

    @pytest.mark.parametrize("groups", [1, 2, 6])
    @pytest.mark.parametrize("int4", [False, True], ids=["int8", "int4"])
    def test_integer_weights(self, implementation: str, int4: bool, groups: int) -> None:
        depth, columns, offsets = 96, 21, [0, 2, 18]
        weight = integers(*((-8, 7) if int4 else (-127, 127)), 2, depth, columns, seed=1)
        scale = torch.rand(2, groups, columns, generator=torch.Generator().manual_seed(2)) / 64
        x = rows(18, depth)
        given = ascend_kernels.pack_int4(weight) if int4 else weight
        y = call(implementation, x, given, offsets, weight_scale=scale, int4=int4)
        whole = weight.double() * scale.double().repeat_interleave(depth // groups, 1)
        assert_close(y, oracle(x, whole, offsets), "matmul")

    def test_rows_behind_the_last_expert_are_not_computed(self, implementation: str) -> None:
        x = torch.full((6, 16), float("nan"))
        x[:2] = 1.0
        y = call(implementation, x, torch.ones(2, 16, 4), [0, 1, 2])
        assert y[:2].tolist() == [[16.0] * 4] * 2

    @pytest.mark.parametrize(("count", "columns"), [(0, 8), (4, 0)], ids=str)
    def test_nothing_to_compute(self, implementation: str, count: int, columns: int) -> None:
        y = call(implementation, torch.ones(count, 16), torch.ones(2, 16, columns), [0, 0, count])
        assert y.shape == (count, columns)

    @settings(max_examples=5, deadline=None)
    @given(counts=st.lists(st.integers(0, 40), min_size=1, max_size=5), depth=st.integers(1, 80),
           columns=st.integers(1, 40))  # fmt: skip
    def test_random_shapes(self, implementation: str, counts: list[int], depth: int, columns: int) -> None:
        offsets = [sum(counts[:index]) for index in range(len(counts) + 1)]
        x, weight = rows(offsets[-1], depth), rows(len(counts), depth, columns, seed=1)
        assert_close(call(implementation, x, weight, offsets), oracle(x, weight, offsets), "matmul")


# bf16 by the definition alone: Triton's interpreter multiplies the bits of bf16 matrices as integers.
@pytest.mark.parametrize(
    ("implementation", "dtype"),
    [(name, dtype) for name in IMPLEMENTATIONS for dtype in FLOATS if name == "naive" or dtype != torch.bfloat16],
    ids=lambda value: value if isinstance(value, str) else short_name(value),
)
@pytest.mark.parametrize(
    ("offsets", "depth", "columns"), [([0, 3, 3, 70], 33, 18), ([0, 0, 1], 1, 2), ([0, 17, 40], 130, 140)], ids=str
)
@pytest.mark.parametrize("swiglu", [False, True], ids=["plain", "swiglu"])
def test_experts_with_rows_of_any_number(
    implementation: str, offsets: list[int], depth: int, columns: int, swiglu: bool, dtype: torch.dtype
) -> None:
    x = (rows(offsets[-1], depth) / depth**0.5).to(dtype)
    weight, bias = rows(len(offsets) - 1, depth, columns, dtype=dtype, seed=1), rows(len(offsets) - 1, columns)
    y = call(implementation, guarded(x), guarded(weight), offsets, swiglu=swiglu, bias=bias, dtype=dtype)
    shift = torch.cat([bias[e].expand(end - begin, -1) for e, (begin, end) in enumerate(pairwise(offsets))])
    expected = oracle(x, weight, offsets) + shift.double()
    assert_close(y, gated(expected) if swiglu else expected, "matmul")


@pytest.mark.parametrize(("target", "most"), [(ASCEND_910B1, 24), (cuda_target(132), 65535)], ids=["ascend", "cuda"])
def test_tiles_fit_and_programs_stay_within_the_grid(target: Any, most: int) -> None:
    plan = plan_grouped(target, 70000 * 64, 8, 7168, 2048, 0)
    assert plan.programs == most
    assert plan.tasks > 65535
    # Two accumulators in fp32.
    assert plan.rows * plan.columns * 4 * 2 <= 128 * 1024
    assert 32 % plan_grouped(target, 64, 8, 128, 128, 32).depth == 0


def test_packing_and_operator_are_well_formed() -> None:
    weight = torch.tensor([[-8], [7], [3], [-1]])
    # Low halves hold -8 + 8 = 0 and 7 + 8 = 15, high halves 3 and -1.
    assert ascend_kernels.pack_int4(weight).tolist() == [[48], [-1]]
    opcheck(
        "grouped_matmul", rows(3, 8), rows(2, 8, 6), torch.tensor([0, 1, 3]), None, None, None, False, True, 1.0, 0.0,
        0.0, torch.float32,
    )  # fmt: skip
    y = ascend_kernels.grouped_matmul(
        integers(-3, 3, 4, 8), integers(-3, 3, 1, 8, 2), torch.tensor([0, 4]), x_scale=torch.ones(4),
        weight_scale=torch.ones(1, 1, 2),
    )  # fmt: skip
    assert y.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": torch.ones(4, 7)}, r"x of shape \(4, 7\)"),
        ({"offsets": torch.zeros(2)}, "3 go"),
        ({"weight": torch.ones(2, 8, 6, dtype=torch.int8)}, "weight_scale missing"),
        ({"weight_scale": torch.ones(2, 1, 6)}, "weight_scale given"),
        ({"x": torch.ones(4, 8, dtype=torch.int8)}, "weight_scale missing"),
        ({"bias": torch.ones(6)}, r"contiguous \(2, 6\) goes"),
        ({"swiglu": True, "weight": torch.ones(2, 8, 5)}, "5 columns"),
        ({"swiglu": True, "limit": -1.0}, "limit -1.0"),
    ],
    ids=["x", "offsets", "no-scale", "scale", "int8", "bias", "odd", "limit"],
)
def test_what_does_not_go_together_is_refused(change: dict[str, Any], message: str) -> None:
    arguments = {"x": torch.ones(4, 8), "weight": torch.ones(2, 8, 6), "offsets": torch.tensor([0, 1, 4])}
    with pytest.raises(ValueError, match=message):
        ascend_kernels.grouped_matmul(**(arguments | change))


def test_numbers_that_four_bits_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="integers from -8 to 7"):
        ascend_kernels.pack_int4(torch.tensor([[8], [0]]))
