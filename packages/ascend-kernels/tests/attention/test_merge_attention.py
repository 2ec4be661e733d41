"""merge_attention: attention over the whole context in float64 as the oracle."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.ops.attention.merge_attention.plan import plan_merge
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run

NOTHING = float("-inf")


def attention(scores: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and log-sum-exp of ``scores[tokens, heads, keys]`` over ``values[keys, heads, size]``."""
    return torch.einsum("thk,khd->thd", scores.softmax(-1), values), scores.logsumexp(-1)


def context(tokens: int, heads: int, size: int, keys: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(keys)
    scores = torch.randn(tokens, heads, keys, generator=generator, dtype=torch.float64) * 4
    return scores, torch.randn(keys, heads, size, generator=generator, dtype=torch.float64)


def parts_of(scores: torch.Tensor, values: torch.Tensor, cuts: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    pieces = [attention(s, v) for s, v in zip(scores.split(cuts, -1), values.split(cuts, 0))]
    return torch.stack([piece[0] for piece in pieces]), torch.stack([piece[1] for piece in pieces]).float()


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestMergeAttention:
    def test_literal_values(self, implementation: str) -> None:
        outputs = torch.tensor([[[[1.0, 4.0]]], [[[5.0, 8.0]]]])
        output, lse = run("merge_attention", implementation, outputs, torch.tensor([[[0.0]], [[1.0986123]]]))
        # Weights of 1 and 3 out of 4.
        assert output.flatten().tolist() == pytest.approx([4.0, 7.0])
        assert lse.item() == pytest.approx(1.3862944)

    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize(("tokens", "heads", "size"), [(1, 1, 1), (3, 5, 33), (9, 2, 128)], ids=str)
    def test_parts_make_the_whole(
        self, implementation: str, tokens: int, heads: int, size: int, dtype: torch.dtype
    ) -> None:
        scores, values = context(tokens, heads, size, 12)
        outputs, lses = parts_of(scores, values, [3, 1, 8])
        output, lse = run("merge_attention", implementation, guarded(outputs.to(dtype)), lses)
        right, right_lse = attention(scores, values)
        # The parts are rounded themselves: as operands of a product are.
        assert_close(output, right, "matmul")
        assert_close(lse, right_lse, "reduction")

    def test_parts_that_have_seen_nothing(self, implementation: str) -> None:
        outputs = torch.full((2, 3, 1, 4), float("nan"))
        lses = torch.full((2, 3, 1), NOTHING)
        outputs[0, 0], lses[0, 0] = 2.0, 1.0
        outputs[1, 1], lses[1, 1] = 3.0, -200.0
        output, lse = run("merge_attention", implementation, outputs, lses)
        assert output[:, 0, 0].tolist() == [2.0, 3.0, 0.0]
        assert lse.flatten().tolist() == [1.0, -200.0, NOTHING]

    @pytest.mark.parametrize("shape", [(2, 0, 3, 4), (2, 3, 2, 0)], ids=str)
    def test_nothing_to_merge(self, implementation: str, shape: tuple[int, ...]) -> None:
        output, lse = run("merge_attention", implementation, torch.empty(shape), torch.zeros(shape[:3]))
        assert (output.shape, lse.shape) == (shape[1:], shape[1:3])

    @settings(max_examples=3, deadline=None)
    @given(tokens=st.integers(1, 30), heads=st.integers(1, 4), size=st.integers(1, 40), parts=st.integers(1, 4))
    def test_random_shapes(self, implementation: str, tokens: int, heads: int, size: int, parts: int) -> None:
        scores, values = context(tokens, heads, size, 2 * parts)
        outputs, lses = parts_of(scores, values, [2] * parts)
        output, _ = run("merge_attention", implementation, outputs.float(), lses)
        assert_close(output, attention(scores, values)[0], "matmul")


def test_tiles_fit_and_programs_stay_within_the_grid() -> None:
    assert plan_merge(cuda_target(132), 70000 * 64, 128, 2).programs == 65535
    for size in (64, 128, 192, 512, 2048):
        plan = plan_merge(ASCEND_910B1, 70000, size, 2)
        assert plan.programs == 48
        assert plan.rows * plan.block * (4 * 2 + 12) <= ASCEND_910B1.unified_buffer
    with pytest.raises(ValueError, match="heads of 20000 elements do not fit"):
        plan_merge(ASCEND_910B1, 1, 20000, 2)


def test_operator_is_well_formed() -> None:
    opcheck("merge_attention", torch.randn(2, 3, 2, 8), torch.randn(2, 3, 2))


@pytest.mark.parametrize(
    ("outputs", "lses"),
    [
        (torch.ones(2, 3, 4), torch.ones(2, 3)),
        (torch.ones(0, 3, 4, 5), torch.ones(0, 3, 4)),
        (torch.ones(2, 3, 4, 5), torch.ones(2, 4, 3)),
        (torch.ones(2, 3, 4, 5), torch.ones(2, 3, 4).half()),
    ],
    ids=["dimensions", "no-parts", "lses", "dtype"],
)
def test_what_does_not_go_together_is_refused(outputs: torch.Tensor, lses: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="merge_attention: outputs"):
        ascend_kernels.merge_attention(outputs, lses)
