"""probabilities and token_logprobs: torch in float64 as the oracle, every implementation and plan against it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.sampling.rows.plan import plan_vocab
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run

INFINITY = float("inf")


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 3).to(dtype)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestProbabilities:
    def test_literal_values(self, implementation: str) -> None:
        # Odds of 1 : 3, and of 1 : 9 at half the temperature.
        logits = torch.tensor([[0.0, 3.0], [0.0, 3.0]]).log()
        logits[:, 0] = 0
        y = run("probabilities", implementation, logits, torch.tensor([1.0, 0.5]), False)
        assert y.tolist() == [
            [pytest.approx(0.25), pytest.approx(0.75)],
            [pytest.approx(0.1), pytest.approx(0.9)],
        ]

    @pytest.mark.parametrize("log", [False, True], ids=["plain", "log"])
    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize(("count", "vocab"), [(1, 1), (3, 33), (5, 8)], ids=str)
    def test_awkward_sizes(self, implementation: str, count: int, vocab: int, dtype: torch.dtype, log: bool) -> None:
        logits = rows(count, vocab, dtype=dtype)
        y = run("probabilities", implementation, guarded(logits), None, log)
        assert (y.dtype, y.is_contiguous()) == (torch.float32, True)
        exact = logits.double()
        assert_close(y, exact.log_softmax(-1) if log else exact.softmax(-1), "reduction")

    @pytest.mark.usefixtures("small_blocks")
    @pytest.mark.parametrize("log", [False, True], ids=["plain", "log"])
    def test_rows_longer_than_a_block(self, implementation: str, log: bool) -> None:
        logits = rows(5, 299)
        y = run("probabilities", implementation, guarded(logits), None, log)
        assert_close(y, logits.double().log_softmax(-1) if log else logits.double().softmax(-1), "reduction")

    def test_scaled_once_and_a_temperature_of_zero_is_one(self, implementation: str) -> None:
        logits, temperature = torch.tensor([[2.0, 0.0, -1.0]] * 2), torch.tensor([0.7, 0.0])
        y = run("probabilities", implementation, logits, temperature, False)
        expected = (logits.double() / torch.tensor([[0.7], [1.0]])).softmax(-1)
        assert_close(y, expected, "reduction")

    @pytest.mark.usefixtures("small_blocks")
    @pytest.mark.parametrize("vocab", [8, 300])
    def test_excluded_tokens_and_large_logits(self, implementation: str, vocab: int) -> None:
        logits = torch.full((1, vocab), -INFINITY)
        logits[0, [2, vocab - 1]] = 3e38
        y = run("probabilities", implementation, logits, None, False)
        assert y.nonzero().tolist() == [[0, 2], [0, vocab - 1]]
        assert y.sum().item() == 1

    def test_columns_that_are_not_neighbours(self, implementation: str) -> None:
        logits = rows(12, 5).t()
        assert_close(
            run("probabilities", implementation, logits, None, False), logits.double().softmax(-1), "reduction"
        )

    @pytest.mark.parametrize("shape", [(0, 8), (4, 0)], ids=str)
    def test_no_elements(self, implementation: str, shape: tuple[int, ...]) -> None:
        assert run("probabilities", implementation, torch.empty(shape), None, False).shape == shape

    @pytest.mark.usefixtures("small_blocks")
    def test_a_row_does_not_depend_on_its_batch(self, implementation: str) -> None:
        logits = rows(7, 300)
        whole = run("probabilities", implementation, logits, None, False)
        for row in (0, 6):
            assert torch.equal(run("probabilities", implementation, logits[[row]], None, False)[0], whole[row])

    @settings(max_examples=8, deadline=None)
    @given(shape=st.lists(st.integers(1, 5), max_size=2), vocab=st.integers(1, 200), log=st.booleans())
    def test_random_shapes(self, implementation: str, shape: list[int], vocab: int, log: bool) -> None:
        logits = rows(*shape, vocab)
        exact = logits.double()
        y = run("probabilities", implementation, logits, None, log)
        assert_close(y, exact.log_softmax(-1) if log else exact.softmax(-1), "reduction")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestTokenLogprobs:
    def test_literal_values(self, implementation: str) -> None:
        # Probabilities 1/8, 1/2, 1/8 and 1/4: the tied eighths are third and fourth, both count as fourth.
        logits = torch.tensor([[1.0, 4.0, 1.0, 2.0]] * 2).log()
        logprobs, ranks = run("token_logprobs", implementation, logits, torch.tensor([[2, 1, -1], [3, 4, 0]]))
        assert logprobs.exp().tolist() == [
            [pytest.approx(0.125), pytest.approx(0.5), 0.0],
            [pytest.approx(0.25), 0.0, pytest.approx(0.125)],
        ]
        assert ranks.tolist() == [4, 2]

    @pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64], ids=short_name)
    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize(("count", "vocab", "tokens"), [(1, 1, 1), (3, 33, 6)], ids=str)
    def test_awkward_sizes(
        self, implementation: str, count: int, vocab: int, tokens: int, dtype: torch.dtype, ids_dtype: torch.dtype
    ) -> None:
        logits = rows(count, vocab, dtype=dtype)
        ids = torch.randint(vocab, (count, tokens), generator=torch.Generator().manual_seed(1))
        logprobs, ranks = run("token_logprobs", implementation, guarded(logits), guarded(ids.to(ids_dtype)))
        exact = logits.double()
        assert_close(logprobs, exact.log_softmax(-1).gather(1, ids), "reduction")
        assert ranks.tolist() == (exact >= exact.gather(1, ids[:, :1])).sum(1).tolist()

    @pytest.mark.usefixtures("small_blocks")
    def test_rows_longer_than_a_block(self, implementation: str) -> None:
        logits = rows(2, 299)
        ids = torch.tensor([[298, 0, 5], [7, 256, 255]])
        logprobs, ranks = run("token_logprobs", implementation, guarded(logits), ids)
        assert_close(logprobs, logits.double().log_softmax(-1).gather(1, ids), "reduction")
        assert ranks.tolist() == (logits >= logits.gather(1, ids[:, :1])).sum(1).tolist()

    def test_an_unknown_first_token_ranks_last(self, implementation: str) -> None:
        logprobs, ranks = run("token_logprobs", implementation, torch.zeros(2, 5), torch.tensor([[-1], [5]]))
        assert (logprobs.tolist(), ranks.tolist()) == ([[-INFINITY], [-INFINITY]], [5, 5])

    def test_more_rows_than_programs(self, implementation: str) -> None:
        count = MAX_PROGRAMS + 2 if implementation == "naive" else 70  # of 48 programs, or one each
        logits, ids = rows(count, 3), torch.arange(count)[:, None] % 3
        logprobs, _ = run("token_logprobs", implementation, logits, ids)
        assert_close(logprobs, logits.double().log_softmax(-1).gather(1, ids), "reduction")

    def test_no_rows(self, implementation: str) -> None:
        logprobs, ranks = run("token_logprobs", implementation, torch.empty(0, 8), torch.empty(0, 2, dtype=torch.int64))
        assert (logprobs.shape, ranks.shape) == ((0, 2), (0,))


@pytest.mark.parametrize(("target", "most"), [(ASCEND_910B1, 48), (cuda_target(132), 65535)], ids=["ascend", "cuda"])
@pytest.mark.parametrize("vocab", [1, 100, 32000, 151936])
@pytest.mark.parametrize("count", [1, 256, 70000])
def test_plans_stay_within_limits(target, most: int, vocab: int, count: int) -> None:
    plan = plan_vocab(target, count, vocab, lane_bytes=40)
    assert plan.programs == min(count, most)
    assert plan.block & (plan.block - 1) == 0
    assert plan.block < 2 * vocab
    assert plan.block * 40 <= target.unified_buffer or target.kind == "cuda"
    assert plan_vocab(target, 1, vocab, lane_bytes=40).block == plan.block


@pytest.mark.parametrize("temperature", [None, torch.ones(3)], ids=["plain", "temperatures"])
def test_operators_are_well_formed(temperature: torch.Tensor | None) -> None:
    opcheck("probabilities", rows(3, 8), temperature, True)
    opcheck("token_logprobs", rows(3, 8), torch.zeros(3, 2, dtype=torch.int64))


def test_arguments_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match=r"logits \(2, 8\) and temperatures \(3,\)"):
        ascend_kernels.probabilities(rows(2, 8), torch.ones(3))
    with pytest.raises(ValueError, match=r"logits \(2, 8\) and token ids \(3, 1\)"):
        ascend_kernels.token_logprobs(rows(2, 8), torch.zeros(3, 1, dtype=torch.int64))
    with pytest.raises(ValueError, match="0 tokens per row; from 1 to 1024 are possible"):
        ascend_kernels.token_logprobs(rows(2, 8), torch.zeros(2, 0, dtype=torch.int64))
