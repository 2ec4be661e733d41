"""Rows alone and in batches, bit for bit; values against torch in float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.ops.batch_invariant.invariant_matmul.plan import plan_invariant
from ascend_kernels.ops.batch_invariant.invariant_rows.plan import plan_invariant_rows
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run

BATCHES = (2, 16, 17, 33)
CUDA = cuda_target(132)
KINDS = ("softmax", "log_softmax", "mean", "rms_norm")


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def oracle(kind: str, x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    exact = x.double()
    if kind == "rms_norm":
        return torch.nn.functional.rms_norm(exact, exact.shape[1:], None if weight is None else weight.double(), 1e-5)
    return exact.mean(-1) if kind == "mean" else getattr(torch, kind)(exact, -1)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestRows:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize(("count", "columns"), [(1, 1), (3, 33)], ids=str)
    def test_values(self, implementation: str, count: int, columns: int, dtype: torch.dtype, kind: str) -> None:
        x = rows(count, columns, dtype=dtype)
        weight = rows(columns, dtype=dtype, seed=1) if kind == "rms_norm" and columns == 33 else None
        result = run("invariant_rows", implementation, guarded(x), weight, kind, 1e-5)
        assert (result.dtype, result.is_contiguous()) == (dtype, True)
        assert_close(result, oracle(kind, x, weight), "reduction")

    @pytest.mark.parametrize("kind", KINDS)
    def test_rows_longer_than_a_tile(self, implementation: str, kind: str) -> None:
        x = rows(1, 8197)
        assert plan_invariant_rows(ASCEND_910B1, 1, 8197, 4).block == 4096
        assert plan_invariant_rows(CUDA, 1, 8197, 4).block == 8192
        assert_close(run("invariant_rows", implementation, x, None, kind, 1e-5), oracle(kind, x, None), "reduction")

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("batch", BATCHES)
    def test_a_row_alone_has_the_same_bits(self, implementation: str, batch: int, kind: str) -> None:
        x = rows(101, batch, seed=batch).t()  # columns lie apart
        together = run("invariant_rows", implementation, x, None, kind, 1e-5)
        for row in (0, batch // 2, batch - 1):
            assert torch.equal(
                run("invariant_rows", implementation, x[row : row + 1], None, kind, 1e-5)[0], together[row]
            )

    def test_no_rows(self, implementation: str) -> None:
        for kind in KINDS:
            result = run("invariant_rows", implementation, torch.empty(0, 8), None, kind, 1e-5)
            assert result.shape == ((0,) if kind == "mean" else (0, 8))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestMatmul:
    @pytest.mark.parametrize(
        ("batches", "count", "depth", "columns"), [(1, 1, 1, 1), (2, 70, 33, 19), (1, 3, 201, 150)], ids=str
    )
    @pytest.mark.parametrize("biased", [False, True], ids=["plain", "bias"])
    def test_values(
        self, implementation: str, batches: int, count: int, depth: int, columns: int, biased: bool
    ) -> None:
        x, y = rows(batches, count, depth), rows(batches, columns, depth, seed=1).mT
        bias = rows(columns, seed=2) if biased else None
        z = run("invariant_matmul", implementation, guarded(x), y, bias)
        expected = x.double() @ y.double()
        assert_close(z, expected if bias is None else expected + bias.double(), "matmul")

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=short_name)
    @pytest.mark.parametrize("batch", BATCHES)
    def test_no_row_sees_another(self, implementation: str, batch: int, dtype: torch.dtype) -> None:
        # The interpreter multiplies tiles with numpy, whose sums depend on a row's place in a tile (a device's do
        # not), so that a row keeps its place here: others before it change, those behind it go.
        x, y = rows(1, 2 * batch, 77, dtype=dtype, seed=batch)[:, ::2], rows(1, 77, 45, dtype=dtype, seed=1)
        together = run("invariant_matmul", implementation, x, y, None)
        for row in (0, batch // 2, batch - 1):
            others = rows(1, row + 1, 77, dtype=dtype, seed=row + 100)
            others[0, row] = x[0, row]
            assert torch.equal(run("invariant_matmul", implementation, others, y, None)[0, row], together[0, row])

    @pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0)], ids=str)
    def test_nothing_to_multiply(self, implementation: str, shape: tuple[int, int, int]) -> None:
        z = run("invariant_matmul", implementation, rows(*shape), rows(shape[0], shape[2], 5), None)
        assert torch.equal(z, torch.zeros(shape[0], shape[1], 5))

    @settings(max_examples=5, deadline=None)
    @given(count=st.integers(1, 130), depth=st.integers(1, 70), columns=st.integers(1, 140))
    def test_random_shapes(self, implementation: str, count: int, depth: int, columns: int) -> None:
        x, y = rows(1, count, depth), rows(1, depth, columns, seed=1)
        assert_close(run("invariant_matmul", implementation, x, y, None), x.double() @ y.double(), "matmul")


@pytest.mark.parametrize("batch", BATCHES)
def test_a_row_alone_has_the_same_bits(batch: int) -> None:
    x, y = rows(1, batch, 77, seed=batch), rows(1, 77, 45, seed=1)
    together = run("invariant_matmul", "naive", x, y, None)
    alone = torch.cat([run("invariant_matmul", "naive", x[:, row : row + 1], y, None) for row in range(batch)], 1)
    assert torch.equal(alone, together)


# bf16 by the definition alone: Triton's interpreter multiplies the bits of bf16 matrices as integers.
def test_bf16_products() -> None:
    x, y = rows(1, 5, 40, dtype=torch.bfloat16), rows(1, 40, 7, dtype=torch.bfloat16, seed=1)
    assert_close(run("invariant_matmul", "naive", x, y, None), x.double() @ y.double(), "matmul")


@pytest.mark.parametrize("target", [ASCEND_910B1, cuda_target(132)], ids=lambda target: target.name)
def test_tiles_do_not_follow_the_number_of_rows(target) -> None:
    for itemsize in (2, 4):
        plans = [plan_invariant(target, 1, count, 4096, itemsize) for count in (1, 17, 70000 * 128)]
        assert len({(plan.rows, plan.columns, plan.depth, plan.warps) for plan in plans}) == 1
        assert plans[-1].programs == (24 if target.kind == "ascend" else 65535)
        reductions = [plan_invariant_rows(target, count, 4096, itemsize) for count in (1, 17, 70000)]
        assert len({plan.block for plan in reductions}) == 1
        assert reductions[-1].programs == (48 if target.kind == "ascend" else 264)


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (2, 6, 4, 5))],
    ids=str,
)
def test_products_of_two_to_four_dimensions(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = rows(*left), rows(*right, seed=1)
    z = ascend_kernels.invariant_matmul(x, y)
    assert_close(z, x.double() @ y.double(), "matmul")


def test_linear_and_means_over_any_dimensions() -> None:
    x, weight, bias = rows(2, 3, 8), rows(5, 8, seed=1), rows(5, seed=2)
    expected = torch.nn.functional.linear(x.double(), weight.double(), bias.double())
    assert_close(ascend_kernels.invariant_linear(x, weight, bias), expected, "matmul")
    for dim, keepdim in ((1, False), ((0, 2), True), (None, False), (-1, True)):
        mean = ascend_kernels.invariant_mean(x, dim, keepdim)
        assert_close(mean, x.double().mean(dim, keepdim), "reduction")
    assert_close(ascend_kernels.invariant_softmax(x, 1), x.double().softmax(1), "reduction")
    assert_close(ascend_kernels.invariant_log_softmax(x, 0), x.double().log_softmax(0), "reduction")


class TestContext:
    @pytest.mark.parametrize(
        "function",
        [
            lambda x, w: torch.nn.functional.linear(x, w, w[:, 0]),
            lambda x, w: x @ w.t(),
            lambda x, w: torch.mm(x, w.t()),
            lambda x, w: torch.addmm(w[:, 0], x, w.t()),
            lambda x, w: torch.bmm(x[None], w.t()[None])[0],
            lambda x, w: x.softmax(-1),
            lambda x, w: torch.log_softmax(x, -1, dtype=torch.float32),
            lambda x, w: x.mean(-1, keepdim=True),
            lambda x, w: torch.nn.functional.rms_norm(x, (x.shape[-1],), w[0], 1e-6),
        ],
        ids=["linear", "matmul", "mm", "addmm", "bmm", "softmax", "log_softmax", "mean", "rms_norm"],
    )
    @pytest.mark.parametrize("inference", [False, True], ids=["no-grad", "inference"])
    def test_torch_gives_the_same_bits_for_a_row_alone(self, function: Callable, inference: bool) -> None:
        x, weight = rows(33, 77), rows(21, 77, seed=1)
        with torch.inference_mode(inference), torch.no_grad(), ascend_kernels.batch_invariant():
            together = function(x, weight)
            for row in (0, 16, 32):
                assert torch.equal(function(x[row : row + 1], weight)[0], together[row])
        assert_close(together, function(x.double(), weight.double()), "matmul")

    def test_other_dtypes_and_what_lies_outside_keep_torchs_operators(self) -> None:
        x = rows(3, 4).double()
        with ascend_kernels.batch_invariant():
            assert torch.equal(x.mean(-1), torch.stack([row.mean() for row in x]))
            assert (torch.arange(4)[None] @ torch.arange(4)[:, None]).tolist() == [[14]]


def test_operators_are_well_formed() -> None:
    opcheck("invariant_matmul", rows(1, 3, 4), rows(1, 4, 5), None)
    opcheck("invariant_rows", rows(3, 8), None, "softmax", 0.0)
    opcheck("invariant_rows", rows(3, 8), None, "mean", 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ascend_kernels.invariant_matmul(rows(2, 3), rows(4, 5)), r"\(2, 3\) times torch.float32 \(4, 5\)"),
        (lambda: ascend_kernels.invariant_matmul(rows(2, 3), rows(3, 5).half()), "of one float dtype"),
        (lambda: ascend_kernels.invariant_matmul(rows(2, 3), rows(3, 5), rows(4)), "5 columns"),
        (lambda: ascend_kernels.invariant_softmax(torch.arange(3)), "torch.int64"),
        (lambda: ascend_kernels.invariant_mean(rows(2, 0), -1), "one of nothing"),
        (lambda: ascend_kernels.invariant_rms_norm(rows(2, 3), rows(4)), "rows have 3 elements"),
    ],
    ids=["depth", "dtype", "bias", "integers", "empty", "weight"],
)
def test_what_does_not_go_together_is_refused(call: Callable, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
