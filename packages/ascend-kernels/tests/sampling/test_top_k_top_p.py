"""top_k_top_p: the masses in front of each token, in float64, as the oracle."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.ops.sampling.top_k_top_p.plan import DEPTH, LANE_BYTES, plan_truncation
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, guarded, opcheck, run

INFINITY = float("inf")
MARGIN = 1e-5
"""How near to p the mass in front of a token may be without the oracle knowing whether it stays."""

pytestmark = pytest.mark.usefixtures("small_blocks")


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 3).to(dtype)


def check(logits: torch.Tensor, truncated: torch.Tensor, top_k: list[int] | None, top_p: list[float] | None) -> None:
    """Each token stays if fewer than k are larger, and if the larger ones among those have less than p."""
    for row, values in enumerate(logits.double()):
        larger = (values[None, :] > values[:, None]).sum(1)
        k = len(values) if top_k is None or not 1 <= top_k[row] < len(values) else top_k[row]
        among = larger < k
        stays, goes = among & ~values.isneginf(), ~among | values.isneginf()
        if top_p is not None and top_p[row] < 1:
            mass = values.masked_fill(~among, -INFINITY).softmax(-1)
            front = ((values[None, :] > values[:, None]) * mass).sum(1)
            stays &= (front < top_p[row] - MARGIN) | (larger == 0)
            goes |= (front > top_p[row] + MARGIN) & (larger > 0)
        kept = ~truncated[row].isneginf()
        assert not (stays & ~kept).any(), f"row {row} lacks {(stays & ~kept).nonzero().flatten().tolist()}"
        assert not (goes & kept).any(), f"row {row} keeps {(goes & kept).nonzero().flatten().tolist()}"
        assert torch.equal(truncated[row][kept], logits[row][kept])


def vector(values: list | None, dtype: torch.dtype) -> torch.Tensor | None:
    return None if values is None else torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("exhaustive", [False, True], ids=["lanes", "exhaustive"])
class TestTopKTopP:
    def test_literal_values(self, implementation: str, exhaustive: bool) -> None:
        # Probabilities 1/8, 1/2, 1/8, 1/4. The larger ones in front of the quarter have 0.5, of the eighths 0.75.
        logits = torch.tensor([[1.0, 4.0, 1.0, 2.0]] * 7).log()
        k = torch.tensor([1, 2, 3, 9, 0, -1, 2], dtype=torch.int32)
        p = torch.tensor([1.0, 1.0, 1.0, 0.6, 0.8, 0.3, 0.6])  # the last of (2/3, 1/3)
        run("top_k_top_p", implementation, logits, k, p, None, exhaustive)
        kept = [[1], [1, 3], [0, 1, 2, 3], [1, 3], [0, 1, 2, 3], [1], [1]]
        assert [(~row.isneginf()).nonzero().flatten().tolist() for row in logits] == kept

    @pytest.mark.parametrize("p", [0.0, 1e-6])
    def test_the_most_probable_token_stays(self, implementation: str, exhaustive: bool, p: float) -> None:
        logits = torch.tensor([[0.0, 5.0, 5.0, 1.0]])
        run("top_k_top_p", implementation, logits, None, torch.tensor([p]), None, exhaustive)
        assert logits.tolist() == [[-INFINITY, 5, 5, -INFINITY]]

    @pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: str(dtype)[6:])
    def test_a_mixed_batch_with_every_k(self, implementation: str, exhaustive: bool, dtype: torch.dtype) -> None:
        vocab = 40 if exhaustive else 100  # several blocks for an NPU
        original = rows(6, vocab, dtype=dtype)
        original[5, 15:] = -INFINITY
        logits = guarded(original)
        k, p = [1, 40, vocab - 1, vocab, 1000, 20], [0.5, 1.0, 0.95, 0.3, 0.999, 0.9]
        run("top_k_top_p", implementation, logits, vector(k, torch.int64), vector(p, torch.float32), None, exhaustive)
        check(original, logits, k, p)

    @pytest.mark.parametrize("p", [0.5, 0.8, 0.97])
    def test_a_lane_that_loses_the_largest_values(self, implementation: str, exhaustive: bool, p: float) -> None:
        original = rows(2, 100)
        original[:, ::32] += 8  # an NPU's block has 32 lanes here
        logits = original.clone()
        run("top_k_top_p", implementation, logits, None, torch.full((2,), p), None, exhaustive)
        check(original, logits, None, [p, p])

    def test_rows_of_one_request_and_rows_that_are_all_alike(self, implementation: str, exhaustive: bool) -> None:
        original = torch.cat([rows(2, 99), torch.full((1, 99), -2.5), torch.full((1, 99), -INFINITY)])
        logits, owner = original.clone(), torch.tensor([1, 1, 0, 0])
        k, p = torch.tensor([3, 7], dtype=torch.int32), torch.tensor([0.5, 0.6])
        run("top_k_top_p", implementation, logits, k, p, owner, exhaustive)
        check(original, logits, k[owner].tolist(), p[owner].tolist())

    def test_what_remains_is_a_distribution(self, implementation: str, exhaustive: bool) -> None:
        logits = rows(2, 100)
        run("top_k_top_p", implementation, logits, torch.tensor([5, 7]), None, None, exhaustive)
        remaining = logits.double().softmax(-1)
        assert (remaining > 0).sum(1).tolist() == [5, 7]
        assert remaining.sum(1).tolist() == [pytest.approx(1), pytest.approx(1)]

    @pytest.mark.parametrize(
        "limits", [(None, None), (torch.ones(0, dtype=torch.int32), torch.ones(0))], ids=["off", "on"]
    )
    def test_no_rows(self, implementation: str, exhaustive: bool, limits: tuple) -> None:
        run("top_k_top_p", implementation, torch.empty(0, 8), *limits, None, exhaustive)

    @settings(max_examples=4, deadline=None)
    @given(data=st.data())
    def test_random_rows(self, implementation: str, exhaustive: bool, data: st.DataObject) -> None:
        vocab = data.draw(st.integers(1, 110))
        # Quarters, so that logits are often tied.
        original = (rows(2, vocab, seed=data.draw(st.integers(0, 99))) * data.draw(st.sampled_from([0.1, 1, 4]))).mul(
            4
        ).round() / 4
        k = data.draw(st.none() | st.lists(st.integers(-1, vocab + 1), min_size=2, max_size=2))
        p = data.draw(st.none() | st.lists(st.floats(0, 1, width=32), min_size=2, max_size=2))
        logits = original.clone()
        run("top_k_top_p", implementation, logits, vector(k, torch.int32), vector(p, torch.float32), None, exhaustive)
        check(original, logits, k, p)


@pytest.mark.parametrize(("target", "most"), [(ASCEND_910B1, 48), (cuda_target(132), 132)], ids=["ascend", "cuda"])
@pytest.mark.parametrize("vocab", [1, 100, 6000, 151936])
@pytest.mark.parametrize("count", [1, 70_000])
def test_plans_stay_within_limits(target, most: int, vocab: int, count: int) -> None:
    plan = plan_truncation(target, count, vocab)
    assert plan.programs == min(count, most)
    assert plan.block & (plan.block - 1) == 0
    assert plan.block * LANE_BYTES <= target.unified_buffer or target.kind == "cuda"
    assert plan.exhaustive == (plan.block * DEPTH >= vocab)


def test_operator_is_well_formed() -> None:
    opcheck("top_k_top_p", rows(3, 8), torch.ones(3, dtype=torch.int32), torch.ones(3), None, False)
    opcheck("top_k_top_p", rows(3, 8), None, torch.ones(3), torch.zeros(3, dtype=torch.int64), True)


def test_arguments_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match=r"top_p \(2,\) with logits \(3, 8\)"):
        ascend_kernels.top_k_top_p(rows(3, 8), top_p=torch.ones(2))
    with pytest.raises(ValueError, match=r"strides \(1, 3\).*neighbours"):
        ascend_kernels.top_k_top_p(rows(8, 3).t(), top_p=torch.ones(3))
