"""The activations: torch in float64 as the oracle, every implementation and plan against it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.activation.elementwise.plan import plan_tiles
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run

functional = torch.nn.functional


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Values within ±50, as reports of lost limits have them."""
    return (torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 100 - 50).to(dtype)


def oracle(x: torch.Tensor, alpha: float, bias: float, limit: float, interleaved: bool) -> torch.Tensor:
    gate, up = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    gate, up = gate.double(), up.double()
    if limit:
        gate, up = torch.minimum(gate, gate.new_tensor(limit)), up.clamp(-limit, limit)
    return gate / (1 + torch.exp(-alpha * gate)) * (up + bias)


def gelu(x: torch.Tensor, approximate: str) -> torch.Tensor:
    x = x.double()
    if approximate == "quick":
        return x / (1 + torch.exp(-1.702 * x))
    if approximate == "tanh":
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * 0.5 * torch.special.erfc(-x / math.sqrt(2))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestSwiglu:
    def test_literal_values(self, implementation: str) -> None:
        # sigmoid(0) = 1/2, and silu(1) = 0.7310586.
        y = run("swiglu", implementation, torch.tensor([[0.0, 1.0, 5.0, 2.0]]), 1.0, 0.0, 0.0, False)
        assert y.tolist() == [[0.0, pytest.approx(1.4621172)]]

    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize("size", [1, 3, 33, 129])
    def test_awkward_sizes(self, implementation: str, size: int, dtype: torch.dtype) -> None:
        x = rows(3, 2 * size, dtype=dtype)
        y = run("swiglu", implementation, guarded(x), 1.0, 0.0, 0.0, False)
        assert_close(y, oracle(x, 1.0, 0.0, 0.0, False), "elementwise")

    @pytest.mark.parametrize("limit", [0.0, 10.0], ids=["off", "limit10"])
    @pytest.mark.parametrize(("alpha", "bias"), [(1.0, 0.0), (1.702, 1.0)], ids=["plain", "oai"])
    @pytest.mark.parametrize("interleaved", [False, True], ids=["halves", "interleaved"])
    def test_variants(self, implementation: str, alpha: float, bias: float, limit: float, interleaved: bool) -> None:
        x = rows(3, 32)
        y = run("swiglu", implementation, x, alpha, bias, limit, interleaved)
        assert_close(y, oracle(x, alpha, bias, limit, interleaved), "elementwise")

    @pytest.mark.parametrize("limit", [0.0, 10.0], ids=["off", "limit10"])
    def test_nan_passes_every_limit(self, implementation: str, limit: float) -> None:
        y = run(
            "swiglu", implementation, torch.tensor([[float("nan"), 1.0, 1.0, float("nan")]]), 1.0, 0.0, limit, False
        )
        assert y.isnan().tolist() == [[True, True]]

    @pytest.mark.parametrize("shape", [(0, 8), (3, 0), (2, 0, 4)], ids=str)
    def test_no_elements(self, implementation: str, shape: tuple[int, ...]) -> None:
        y = run("swiglu", implementation, torch.empty(shape), 1.0, 0.0, 0.0, False)
        assert y.shape == (*shape[:-1], shape[-1] // 2)

    def test_more_rows_than_programs(self, implementation: str) -> None:
        x = rows(MAX_PROGRAMS + 2, 4)
        assert_close(
            run("swiglu", implementation, x, 1.0, 0.0, 0.0, False), oracle(x, 1.0, 0.0, 0.0, False), "elementwise"
        )

    @settings(max_examples=8, deadline=None)
    @given(shape=st.lists(st.integers(1, 9), min_size=1, max_size=3), size=st.integers(1, 70))
    def test_random_shapes(self, implementation: str, shape: list[int], size: int) -> None:
        x = rows(*shape, 2 * size)
        assert_close(
            run("swiglu", implementation, x, 1.0, 0.0, 0.0, False), oracle(x, 1.0, 0.0, 0.0, False), "elementwise"
        )


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestOthers:
    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    def test_swiglustep_cuts_the_activation(self, implementation: str, dtype: torch.dtype) -> None:
        x = rows(3, 50, dtype=dtype)
        gate, up = x.double().chunk(2, -1)
        expected = (gate / (1 + torch.exp(-gate))).clamp(max=7) * up.clamp(-7, 7)
        assert_close(run("swiglustep", implementation, guarded(x), 7.0), expected, "elementwise")

    @pytest.mark.parametrize("approximate", ["none", "tanh", "quick"])
    def test_gelu(self, implementation: str, approximate: str) -> None:
        x = rows(5, 33) / 12
        assert_close(run("gelu", implementation, x.t(), approximate), gelu(x.t(), approximate), "reduction")

    @pytest.mark.parametrize("approximate", ["none", "tanh", "quick"])
    def test_gelu_and_mul(self, implementation: str, approximate: str) -> None:
        x = rows(5, 66) / 12
        gate, up = x.double().chunk(2, -1)
        actual = run("gelu_and_mul", implementation, guarded(x), approximate)
        assert_close(actual, gelu(gate, approximate) * up, "reduction")

    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize("shape", [(), (7,), (0, 3), (3, 5, 9)], ids=str)
    def test_muls_add(self, implementation: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        x, y = rows(*shape, dtype=dtype), rows(*shape, dtype=dtype, seed=1)
        result = run("muls_add", implementation, x, y, 0.25)
        assert_close(result, x.double() * 0.25 + y.double(), "elementwise")


def dequantised(quantised: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return quantised.double() * scales.double()[..., None]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestQuantisation:
    def test_literal_values_round_to_even(self, implementation: str) -> None:
        # The scale is 1: 0.5, 1.5 and 2.5 lie between two integers.
        quantised, scales = run("dynamic_quant", implementation, torch.tensor([[127.0, 0.5, 1.5, 2.5, -3.5]]))
        assert scales.tolist() == [1.0]
        assert quantised.tolist() == [[127, 0, 2, 2, -4]]

    def test_a_row_of_zeros_has_scale_zero(self, implementation: str) -> None:
        quantised, scales = run("dynamic_quant", implementation, torch.zeros(2, 5))
        assert (scales.tolist(), quantised.abs().max().item()) == ([0.0, 0.0], 0)

    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize("shape", [(3, 33), (2, 3, 100), (0, 8)], ids=str)
    def test_every_value_is_within_half_a_step(
        self, implementation: str, shape: tuple[int, ...], dtype: torch.dtype
    ) -> None:
        x = rows(*shape, dtype=dtype)
        quantised, scales = run("dynamic_quant", implementation, guarded(x))
        assert (quantised.shape, scales.shape) == (shape, shape[:-1])
        error = (dequantised(quantised, scales) - x.double()).abs()
        assert (error <= scales.double()[..., None] * 0.5001).all()
        assert_close(scales, x.double().abs().amax(-1) / 127 if x.numel() else scales, "elementwise")

    @pytest.mark.parametrize(
        "form", [(1.0, 0.0, 0.0), (1.0, 0.0, 10.0), (1.702, 1.0, 7.0)], ids=["plain", "limit", "oai"]
    )
    @pytest.mark.parametrize("groups", [None, [3], [0, 3, 0], [0, 2]], ids=str)
    @pytest.mark.parametrize("cumulative", [False, True], ids=["counts", "cumulative"])
    def test_swiglu_quant(
        self, implementation: str, form: tuple[float, ...], groups: list[int] | None, cumulative: bool
    ) -> None:
        x = rows(3, 32)
        total = 3 if groups is None else sum(groups)
        group_list = None
        if groups is not None:
            # One element more than there are groups, which would change the total if it were read.
            group_list = torch.tensor([*groups, 99])
            group_list = (group_list.cumsum(0) if cumulative else group_list)[:-1]
        quantised, scales = run("swiglu_quant", implementation, guarded(x), group_list, cumulative, *form)
        expected = oracle(x, *form, False)[:total]
        error = (dequantised(quantised[:total], scales[:total]) - expected).abs()
        assert (error <= scales[:total].double()[:, None] * 0.5001).all()
        assert_close(scales[:total], expected.abs().amax(-1) / 127, "elementwise")

    def test_a_group_without_rows_and_no_groups(self, implementation: str) -> None:
        x = rows(2, 8)
        for group_list in (torch.empty(0, dtype=torch.int64), torch.tensor([0])):
            quantised, scales = run("swiglu_quant", implementation, x, group_list, False, 1.0, 0.0, 0.0)
            assert (quantised.shape, scales.shape) == ((2, 4), (2,))

    def test_rows_that_do_not_fit(self, implementation: str) -> None:
        x = rows(2, 40000)
        quantised, scales = run("swiglu_quant", implementation, x, None, False, 1.0, 0.0, 0.0)
        error = (dequantised(quantised, scales) - oracle(x, 1.0, 0.0, 0.0, False)).abs()
        assert (error <= scales.double()[:, None] * 0.5001).all()


# Results, and programs worked out by hand. An NPU has 48 vector cores and room for 4,096 elements of 28 bytes; each
# core gets a tile if that leaves it 256 elements. A CUDA tile has 2,048 elements, and there may be 65,535 programs.
@pytest.mark.parametrize(
    ("target", "count", "columns", "programs"),
    [
        (ASCEND_910B1, 1, 1, 1),
        (ASCEND_910B1, 70000, 3, 48),  # 69 tiles of 1,024 rows
        (ASCEND_910B1, 5, 14336, 35),  # 7 tiles of 2,048 columns a row
        (ASCEND_910B1, 1, 10**7, 48),
        (cuda_target(132), 1, 1, 1),
        (cuda_target(132), 70000, 3, 137),  # 512 rows of a padded width of 4
        (cuda_target(132), 5, 14336, 35),
        (cuda_target(132), 1, 10**7, 4883),
        (cuda_target(132), 10**6, 2048, 65535),
    ],
    ids=str,
)
def test_tiles_cover_everything_within_limits(target, count: int, columns: int, programs: int) -> None:
    plan = plan_tiles(target, count, columns, 6, 16)
    assert plan.programs == programs
    assert plan.rows * plan.block * (2 * 6 + 16) <= target.unified_buffer or target.kind == "cuda"


CHECKED: dict[str, Callable[[], tuple]] = {
    "swiglu": lambda: (rows(2, 8), 1.0, 0.0, 0.0, False),
    "swiglustep": lambda: (rows(2, 8), 7.0),
    "gelu": lambda: (rows(2, 8), "tanh"),
    "gelu_and_mul": lambda: (rows(2, 8), "none"),
    "muls_add": lambda: (rows(2, 8), rows(2, 8), 0.5),
    "dynamic_quant": lambda: (rows(2, 8),),
    "swiglu_quant": lambda: (rows(2, 8), None, False, 1.0, 0.0, 0.0),
}


@pytest.mark.parametrize("name", CHECKED)
def test_operators_are_well_formed(name: str) -> None:
    opcheck(name, *CHECKED[name]())


def test_what_is_not_allowed_is_refused() -> None:
    with pytest.raises(ValueError, match="rows of 3 elements"):
        ascend_kernels.swiglu(rows(2, 3))
    with pytest.raises(ValueError, match="limit -1"):
        ascend_kernels.swiglu_quant(rows(2, 4), limit=-1.0)
    with pytest.raises(ValueError, match="limit 0"):
        ascend_kernels.swiglustep(rows(2, 4), limit=0.0)
    with pytest.raises(ValueError, match="'erf'; none, tanh or quick"):
        ascend_kernels.gelu(rows(2, 4), "erf")
    with pytest.raises(ValueError, match="must be alike"):
        ascend_kernels.muls_add(rows(2, 4), rows(4, 2), 1.0)
