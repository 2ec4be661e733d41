"""rms_norm and add_rms_norm: torch's own norm in float64 as the oracle, every implementation and plan against it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.norm.row_norm.plan import plan_rows
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run


def oracle(x: torch.Tensor, weight: torch.Tensor | None, eps: float, gemma: bool = False) -> torch.Tensor:
    factor = None if weight is None else weight.double() + gemma
    return torch.nn.functional.rms_norm(x.double(), x.shape[-1:], factor, eps)


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 3).to(dtype)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestRmsNorm:
    def test_literal_values(self, implementation: str) -> None:
        # The mean square of (3, 4) is 12.5.
        y = run("rms_norm", implementation, torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 2.0]), 0.0, False)
        assert y.tolist() == [[pytest.approx(3 / 12.5**0.5), pytest.approx(8 / 12.5**0.5)]]

    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize(("count", "size"), [(1, 1), (3, 33), (65, 8), (2, 896)], ids=str)
    def test_awkward_sizes(self, implementation: str, count: int, size: int, dtype: torch.dtype) -> None:
        x, weight = rows(count, size, dtype=dtype), rows(size, dtype=dtype, seed=1)
        y = run("rms_norm", implementation, guarded(x), weight, 1e-5, False)
        assert (y.dtype, y.is_contiguous()) == (dtype, True)
        assert_close(y, oracle(x, weight, 1e-5), "reduction")

    def test_gemma_multiplies_by_one_more_than_the_weight(self, implementation: str) -> None:
        x, weight = rows(5, 48), rows(48, seed=1)
        assert_close(run("rms_norm", implementation, x, weight, 1e-6, True), oracle(x, weight, 1e-6, True), "reduction")

    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_heads_cut_out_of_wider_rows(self, implementation: str, weighted: bool) -> None:
        qkv = torch.full((7, 100), float("nan"))
        heads = qkv[:, 10:82].unflatten(-1, (3, 24))
        heads.copy_(rows(7, 3, 24))
        weight = rows(24, seed=1) if weighted else None
        y = run("rms_norm", implementation, heads, weight, 1e-6, False)
        assert_close(y, oracle(heads, weight, 1e-6), "reduction")

    def test_columns_that_are_not_neighbours(self, implementation: str) -> None:
        x = rows(12, 5).t()
        assert_close(run("rms_norm", implementation, x, None, 1e-6, False), oracle(x, None, 1e-6), "reduction")

    def test_statistics_of_large_fp16_values_do_not_overflow(self, implementation: str) -> None:
        x = torch.full((2, 64), 60000.0, dtype=torch.float16)
        y = run("rms_norm", implementation, x, None, 1e-6, False)
        assert y.tolist() == [[1.0] * 64] * 2

    def test_more_rows_than_programs(self, implementation: str) -> None:
        x = rows(MAX_PROGRAMS + 2, 8)
        if implementation == "cuda":  # its tiles hold fewer rows; a slice shows the same
            x = x[:2050]
        assert_close(run("rms_norm", implementation, x, None, 1e-6, False), oracle(x, None, 1e-6), "reduction")

    @pytest.mark.parametrize("shape", [(0, 8), (4, 0, 8)], ids=str)
    def test_no_rows(self, implementation: str, shape: tuple[int, ...]) -> None:
        y = run("rms_norm", implementation, torch.empty(shape, dtype=torch.bfloat16), None, 1e-6, False)
        assert (y.shape, y.dtype) == (shape, torch.bfloat16)

    @settings(max_examples=8, deadline=None)
    @given(data=st.data())
    def test_random_shapes(self, implementation: str, data: st.DataObject) -> None:
        shape = [*data.draw(st.lists(st.integers(1, 6), max_size=2)), data.draw(st.integers(1, 200))]
        dtype = data.draw(st.sampled_from(FLOATS))
        x, weight = rows(*shape, dtype=dtype), rows(shape[-1], seed=1)
        assert_close(run("rms_norm", implementation, x, weight, 1e-6, False), oracle(x, weight, 1e-6), "reduction")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestAddRmsNorm:
    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize("gemma", [False, True], ids=["plain", "gemma"])
    def test_sum_and_norm(self, implementation: str, dtype: torch.dtype, gemma: bool) -> None:
        x, residual, weight = rows(3, 100, dtype=dtype), rows(3, 100, dtype=dtype, seed=1), rows(100, seed=2)
        y, total = run("add_rms_norm", implementation, guarded(x), guarded(residual, 3), weight, 1e-6, gemma)
        exact = x.double() + residual.double()
        assert_close(total, exact, "elementwise")
        assert_close(y, oracle(exact, weight, 1e-6, gemma), "reduction")

    def test_no_rows(self, implementation: str) -> None:
        empty = torch.empty(0, 16)
        y, total = run("add_rms_norm", implementation, empty, empty, torch.ones(16), 1e-6, False)
        assert (y.shape, total.shape) == ((0, 16), (0, 16))


def test_rows_that_do_not_fit_are_read_twice_and_right() -> None:
    pytest.importorskip("triton", reason="the Triton kernels need a Triton")
    plan = plan_rows(ASCEND_910B1, 1, 3, 20000, transfer_bytes=4, value_bytes=12, per_group=False)
    assert not plan.one_pass
    x, residual, weight = rows(2, 20000), rows(2, 20000, seed=1), rows(20000, seed=2)
    assert_close(run("rms_norm", "ascend", x, weight, 1e-6, False), oracle(x, weight, 1e-6), "reduction")
    y, total = run("add_rms_norm", "ascend", x, residual, weight, 1e-6, True)
    assert_close(total, x.double() + residual.double(), "elementwise")
    assert_close(y, oracle(x.double() + residual.double(), weight, 1e-6, True), "reduction")


# How many programs run: one per vector core of an NPU, on CUDA as many as a grid may have.
@pytest.mark.parametrize(("target", "most"), [(ASCEND_910B1, 48), (cuda_target(132), 65535)], ids=["ascend", "cuda"])
@pytest.mark.parametrize("columns", [1, 100, 4096, 5120, 8192, 50000])
@pytest.mark.parametrize(("outer", "inner"), [(1, 1), (1, 70000), (70000, 3), (4, 17)], ids=str)
def test_plans_stay_within_limits(target, most: int, columns: int, outer: int, inner: int) -> None:
    plan = plan_rows(target, outer, inner, columns, transfer_bytes=6, value_bytes=12, per_group=False)
    tiles = outer * -(-inner // plan.rows)
    assert plan.programs == min(tiles, most)
    assert plan.block * plan.rows * (12 + 6 * (1 + plan.multibuffer)) <= target.unified_buffer or target.kind == "cuda"
    assert plan.block >= columns or not plan.one_pass
    assert plan.rows & (plan.rows - 1) == plan.block & (plan.block - 1) == 0


@pytest.mark.parametrize("weight", [None, torch.ones(8)], ids=["plain", "weighted"])
def test_operators_are_well_formed(weight: torch.Tensor | None) -> None:
    opcheck("rms_norm", rows(3, 8), weight, 1e-6, False)
    opcheck("add_rms_norm", rows(3, 8), rows(3, 8), torch.ones(8), 1e-6, False)


def test_a_weight_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"rows have 8 elements and the weight has shape \(7,\)"):
        ascend_kernels.rms_norm(rows(2, 8), torch.ones(7))
    with pytest.raises(ValueError, match=r"residual \(3, 8\)"):
        ascend_kernels.add_rms_norm(rows(2, 8), rows(3, 8), torch.ones(8))
