"""gumbel_argmax, scale_logits and their noise: distributions and formulas as the oracle of every implementation."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.ops.sampling.noise.naive import exponential
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run

INFINITY = float("inf")
SIZES = [(1, 1, torch.float32), (17, 8, torch.float32), (2, 299, torch.float32), *((3, 33, dtype) for dtype in FLOATS)]
"""Rows and vocabulary: one, more rows than an NPU of the fixture has cores, several blocks, no power of two."""


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 3).to(dtype)


def distance_to_exponential(noise: torch.Tensor) -> float:
    """Kolmogorov's distance to Exp(1), times the square root of the number of draws: above 1.95 once in 1,000."""
    ordered = noise.flatten().double().sort().values
    steps = torch.arange(len(ordered) + 1, dtype=torch.float64) / len(ordered)
    exact = 1 - torch.exp(-ordered)
    return math.sqrt(len(ordered)) * max((exact - steps[:-1]).max().item(), (steps[1:] - exact).max().item())


class TestNoise:
    @pytest.mark.parametrize("axis", ["tokens", "positions", "seeds"])
    def test_neighbours_are_independent_draws_from_the_exponential_distribution(self, axis: str) -> None:
        count = 100_000
        arguments = {"seeds": torch.tensor(-7), "positions": torch.tensor(11), "tokens": torch.tensor(5)}
        arguments[axis] = torch.arange(count)
        noise = exponential(**arguments)
        assert distance_to_exponential(noise) < 1.95
        for lag in (1, 2, 16, 1024):
            together = torch.stack([noise[:-lag], noise[lag:]])
            assert abs(torch.corrcoef(together)[0, 1].item()) < 4 / math.sqrt(count)

    def test_both_halves_of_a_seed_count(self) -> None:
        seeds = torch.tensor([[1], [1 + 2**32], [1 - 2**63], [-1]])
        noise = exponential(seeds, torch.tensor(0), torch.arange(64))
        assert len(torch.unique(noise)) == noise.numel()

    def test_small_noise_has_full_precision(self) -> None:
        # The winner among many tokens has little noise: multiples of 2**-24 would tie.
        noise = exponential(torch.tensor(3), torch.tensor(4), torch.arange(2_000_000)).sort().values[:1000]
        assert len(torch.unique(noise)) == 1000
        assert 0 < noise[0] < noise[-1] < 1e-3


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestGumbelArgmax:
    def test_rows_use_the_state_of_their_request(self, implementation: str) -> None:
        logits = rows(6, 50)
        temperature, seeds = torch.tensor([0.0, 0.9]), torch.tensor([5, 6])
        positions, owner = torch.arange(6), torch.tensor([0, 0, 0, 1, 1, 1], dtype=torch.int32)
        sampled = run("gumbel_argmax", implementation, logits, temperature, seeds, positions, None, owner)
        assert sampled[:3].tolist() == logits[:3].argmax(-1).tolist()
        again = run("gumbel_argmax", implementation, logits, temperature, seeds, positions, None, owner)
        assert torch.equal(sampled, again)
        for row in (3, 4, 5):
            alone = run(
                "gumbel_argmax", implementation, logits[row : row + 1], temperature[1:], seeds[1:],
                positions[row : row + 1], None, None,
            )  # fmt: skip
            assert alone.item() == sampled[row]

    @pytest.mark.usefixtures("small_blocks")
    @pytest.mark.parametrize(("count", "vocab", "dtype"), SIZES, ids=lambda value: str(value).removeprefix("torch."))
    @pytest.mark.parametrize("bounded", [False, True], ids=["plain", "minp"])
    def test_samples_are_those_of_the_formula(
        self, implementation: str, count: int, vocab: int, dtype: torch.dtype, bounded: bool
    ) -> None:
        logits = rows(count, vocab, dtype=dtype)
        temperature = torch.linspace(0, 1.5, count + 1)[1:]
        seeds, positions = torch.arange(count) * 2**40 - 3, torch.arange(count) + 7
        min_p = torch.linspace(0, 0.5, count) if bounded else None
        sampled = run("gumbel_argmax", implementation, guarded(logits), temperature, seeds, positions, min_p, None)
        chances = logits.double() / temperature[:, None]
        if min_p is not None:
            chances = chances.masked_fill(
                chances.softmax(-1) < min_p[:, None] * chances.softmax(-1).amax(-1, True), -INFINITY
            )
        noise = exponential(seeds[:, None], positions[:, None], torch.arange(vocab))
        assert sampled.tolist() == (chances - noise.double().log()).argmax(-1).tolist()

    def test_ties_go_to_the_lowest_id_and_excluded_rows_give_zero(self, implementation: str) -> None:
        logits = torch.tensor([[-8.0, 9, 9, 2], [-INFINITY] * 4])
        vectors = torch.zeros(2), torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
        assert run("gumbel_argmax", implementation, logits, *vectors, None, None).tolist() == [1, 0]

    def test_an_excluded_token_is_never_sampled(self, implementation: str) -> None:
        logits = torch.full((9, 9), -INFINITY)
        logits[:, 7] = -50
        integers = torch.arange(9)
        sampled = run(
            "gumbel_argmax", implementation, logits, torch.ones(9), integers, integers, torch.full((9,), 0.1), None
        )
        assert sampled.tolist() == [7] * 9

    def test_no_rows(self, implementation: str) -> None:
        none = torch.empty(0, dtype=torch.int64)
        assert run(
            "gumbel_argmax", implementation, torch.empty(0, 8), torch.empty(0), none, none, None, None
        ).shape == (0,)


def test_frequencies_are_the_probabilities() -> None:
    logits = torch.tensor([0.5, -1.0, 2.0, 1.0, -INFINITY])
    draws = 40_000
    sampled = ascend_kernels.gumbel_argmax(
        logits.expand(draws, 5), torch.tensor([0.8]), torch.tensor([42]), torch.arange(draws),
        request_of_row=torch.zeros(draws, dtype=torch.int32),
    )  # fmt: skip
    expected = (logits.double() / 0.8).softmax(-1)[:4] * draws
    counts = torch.bincount(sampled, minlength=5)
    assert counts[4] == 0
    # Chi-squared with three degrees of freedom: above 16.3 once in 1,000.
    assert ((counts[:4] - expected) ** 2 / expected).sum() < 16.3


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestScaleLogits:
    @pytest.mark.usefixtures("small_blocks")
    @pytest.mark.parametrize(("count", "vocab", "dtype"), SIZES, ids=lambda value: str(value).removeprefix("torch."))
    @pytest.mark.parametrize("bounded", [False, True], ids=["plain", "minp"])
    def test_awkward_sizes(
        self, implementation: str, count: int, vocab: int, dtype: torch.dtype, bounded: bool
    ) -> None:
        original = rows(count, vocab, dtype=dtype)
        logits, temperature = guarded(original), torch.tensor([0.0, 0.7])
        owner = (torch.arange(count) % 2).to(torch.int32)
        min_p = torch.tensor([0.25, 0.0]) if bounded else None
        run("scale_logits", implementation, logits, temperature, min_p, owner)
        expected = original.double() / torch.tensor([1.0, 0.7])[owner, None]
        if min_p is not None:
            share = expected.softmax(-1) / expected.softmax(-1).amax(-1, keepdim=True)
            expected = expected.masked_fill(share < min_p[owner, None], -INFINITY)
        assert_close(logits, expected, "elementwise")

    def test_literal_min_p(self, implementation: str) -> None:
        # Odds 8 : 4 : 2 : 1; a token stays at a quarter of the largest, exactly.
        logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]]) * math.log(2)
        run("scale_logits", implementation, logits, torch.ones(1), torch.tensor([0.2499]), None)
        assert logits.isneginf().tolist() == [[False, False, False, True]]

    def test_no_rows(self, implementation: str) -> None:
        run("scale_logits", implementation, torch.empty(0, 8), torch.empty(0), None, None)

    @settings(max_examples=8, deadline=None)
    @given(count=st.integers(1, 9), vocab=st.integers(1, 90), more=st.integers(0, 3))
    def test_random_shapes_and_spare_requests(self, implementation: str, count: int, vocab: int, more: int) -> None:
        logits, temperature = rows(count, vocab), torch.rand(count + more) + 0.1
        expected = logits.double() / temperature[:count, None]
        run("scale_logits", implementation, logits, temperature, None, None)
        assert_close(logits, expected, "elementwise")


@pytest.mark.parametrize(
    "extra", [(None, None), (torch.ones(3), torch.zeros(3, dtype=torch.int32))], ids=["few", "all"]
)
def test_operators_are_well_formed(extra: tuple[torch.Tensor | None, torch.Tensor | None]) -> None:
    integers = torch.zeros(3, dtype=torch.int64)
    opcheck("gumbel_argmax", rows(3, 8), torch.ones(3), integers, integers, *extra)
    opcheck("scale_logits", rows(3, 8), torch.ones(3), *extra)


def test_arguments_that_do_not_belong_together_are_refused() -> None:
    integers = torch.zeros(3, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"seeds \(2,\) with logits \(3, 8\)"):
        ascend_kernels.gumbel_argmax(rows(3, 8), torch.ones(3), integers[:2], integers)
    with pytest.raises(ValueError, match=r"\(2,\) positions for 3 rows"):
        ascend_kernels.gumbel_argmax(rows(3, 8), torch.ones(3), integers, integers[:2])
    with pytest.raises(ValueError, match=r"strides \(1, 3\).*neighbours"):
        ascend_kernels.scale_logits(rows(8, 3).t(), torch.ones(3))
    with pytest.raises(ValueError, match=r"request_of_row \(2,\): one request for each of 3 rows"):
        ascend_kernels.scale_logits(rows(3, 8), torch.ones(3), request_of_row=integers[:2])
