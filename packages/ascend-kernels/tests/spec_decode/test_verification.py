"""Verification of drafts: hand-worked cases and the target's distribution as the oracle of every implementation."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.sampling.noise.naive import exponential
from ascend_kernels.ops.spec_decode.rejection_sample.plan import plan_rejection
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import IMPLEMENTATIONS, TRITON_PLANS, assert_close, guarded, opcheck, run


def distributions(*shape: int, seed: int = 0) -> torch.Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 2).softmax(-1)


def integers(*values: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


def rows_of(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Seeds, positions and requests of rows that are each a request's."""
    return torch.arange(count) * 2**33 + 5, torch.arange(count) + 100, torch.arange(count)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestRecoveredTokens:
    @pytest.mark.usefixtures("small_blocks")
    @pytest.mark.parametrize("proposed", [False, True], ids=["certain", "drafts"])
    @pytest.mark.parametrize(("count", "vocab"), [(1, 1), (3, 33), (5, 299)], ids=str)
    def test_argmax_of_the_residual_over_noise(
        self, implementation: str, count: int, vocab: int, proposed: bool
    ) -> None:
        target, draft = distributions(count, vocab), distributions(count, vocab, seed=1)
        ids, rows = torch.arange(count) % vocab, rows_of(count)
        before = target.clone()
        recovered = run(
            "recovered_tokens", implementation, guarded(target), guarded(draft) if proposed else None, ids,
            torch.ones(count), *rows, None,
        )  # fmt: skip
        if not proposed:
            draft = torch.nn.functional.one_hot(ids, vocab) * target
        residual = (target.double() - draft.double()).clamp(min=0)
        noise = exponential(rows[0][:, None], rows[1][:, None], torch.arange(vocab))
        assert recovered.tolist() == (residual / noise).argmax(-1).tolist()
        assert torch.equal(target, before)

    def test_greedy_requests_get_the_argmax_whatever_the_draft(self, implementation: str) -> None:
        # Of the logits of a batch of a greedy and a random request; 5 is the largest, twice in the third row.
        target = torch.tensor([[-8.0, -3, -2, -1, 0, 9, 1, 2]] * 3).softmax(-1)
        target[2, 7] = target[2, 5]
        ids, temperature = integers(5, 0, 5), torch.tensor([0.0, 0.7])
        recovered = run(
            "recovered_tokens", implementation, target, None, ids, temperature, integers(1, 2, dtype=torch.int64),
            torch.arange(3), integers(0, 1, 0), None,
        )  # fmt: skip
        assert recovered.tolist() == [5, 5, 5]

    def test_candidates_in_any_order_are_named_by_their_tokens(self, implementation: str) -> None:
        # The tied maxima are tokens 90 and 40 of a vocabulary of 100.
        target, indices = torch.tensor([[0.25, 0.25, 0.2, 0.0]] * 2), torch.tensor([[90, 40, 7, 3], [40, 90, 7, 3]])
        zero = torch.zeros(2, dtype=torch.int64)
        recovered = run(
            "recovered_tokens",
            implementation,
            target,
            None,
            integers(90, 90),
            torch.zeros(2),
            zero,
            zero,
            zero,
            indices,
        )
        assert recovered.tolist() == [40, 40]
        # A drafter sure of 90 and 40 leaves token 7 alone.
        draft = torch.zeros(2, 100)
        draft[:, [90, 40]] = 0.5
        recovered = run(
            "recovered_tokens",
            implementation,
            target,
            draft,
            integers(90, 40),
            torch.ones(2),
            zero,
            zero,
            zero,
            indices,
        )
        assert recovered.tolist() == [7, 7]

    def test_a_placeholder_samples_the_target(self, implementation: str) -> None:
        target, draft = torch.tensor([[0.0, 1.0, 0.0]]), torch.tensor([[0.0, 1.0, 0.0]])
        zero = torch.zeros(1, dtype=torch.int64)
        for proposed in (None, draft):
            arguments = (target, proposed, integers(-1), torch.ones(1), zero, zero, zero, None)
            assert run("recovered_tokens", implementation, *arguments).tolist() == [1]

    def test_no_rows(self, implementation: str) -> None:
        none = torch.empty(0, dtype=torch.int64)
        arguments = (torch.empty(0, 8), None, none, torch.ones(1), torch.zeros(1, dtype=torch.int64), none, none, None)
        assert run("recovered_tokens", implementation, *arguments).shape == (0,)


@pytest.mark.parametrize("vocab", [4097, 129280, 151936])
@pytest.mark.parametrize("proposed", [False, True], ids=["certain", "drafts"])
def test_a_winner_in_the_last_tile_of_a_large_vocabulary(vocab: int, proposed: bool) -> None:
    target = torch.full((1, vocab), 1e-9)
    target[0, vocab - 1] = 0.9
    draft = torch.full((1, vocab), 1e-9) if proposed else None
    zero = torch.zeros(1, dtype=torch.int64)
    for implementation in ("naive", *(name for name in TRITON_PLANS if name == "ascend")):
        arguments = (target, draft, integers(3), torch.ones(1), zero, zero, zero, None)
        assert run("recovered_tokens", implementation, *arguments).tolist() == [vocab - 1]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestRejectionSample:
    def test_greedy_requests(self, implementation: str) -> None:
        # All accepted; rejected at once; rejected second; no drafts.
        emitted = run(
            "rejection_sample", implementation, integers(5, 6, 1, 2, 3, 4), integers(2, 4, 6, 6), distributions(6, 8),
            None, integers(5, 6, 7, 2, 3, 0), integers(7, 7, 7, 6), torch.zeros(6), torch.zeros(4), None, None, 2,
            False, 0.0, 0.0,
        )  # fmt: skip
        assert emitted.tolist() == [[5, 6, 7], [7, -1, -1], [3, 0, -1], [6, -1, -1]]

    @pytest.mark.parametrize("proposed", [False, True], ids=["certain", "drafts"])
    def test_random_requests(self, implementation: str, proposed: bool) -> None:
        # p is 1/2 for each draft and q, if given, 4/5: accepted up to u = 1/2 or 5/8. A placeholder never is.
        target = torch.tensor([[0.5, 0.5, 0.0, 0.0]] * 6)
        draft = torch.tensor([[0.8, 0.2, 0.0, 0.0]] * 6) if proposed else None
        uniform = torch.tensor([0.4, 0.6, 0.9, 0.0, 0.5, 0.0])
        arguments = (target, draft, integers(1, 1, 1, 3, 1, 1), integers(2, 2), uniform, torch.tensor([1.0, 0.5]))
        emitted = run(
            "rejection_sample", implementation, integers(0, 0, 0, -1, 0, 0), integers(3, 6), *arguments, None, None, 3,
            False, 0.0, 0.0,
        )  # fmt: skip
        first = [0, 0, 1, -1] if proposed else [0, 1, -1, -1]
        assert emitted.tolist() == [first, [3, -1, -1, -1]]

    def test_a_token_that_the_target_excludes_is_rejected_whatever_the_noise(self, implementation: str) -> None:
        target, draft = torch.tensor([[0.0, 1.0], [0.5, 0.5]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        emitted = run(
            "rejection_sample", implementation, integers(0, 0), integers(1, 2), target, draft, integers(1, 1),
            integers(0, 0), torch.zeros(2), torch.ones(2), None, None, 1, False, 0.0, 0.0,
        )  # fmt: skip
        assert emitted.tolist() == [[1, -1], [1, -1]]

    def test_drafts_accepted_together(self, implementation: str) -> None:
        # Ratios 0.5, 4 and 0.5: together 0.5, 1 (not 2), 0.5; the products of the noise are 0.6, 0.54 and 0.53 or 0.49.
        target = torch.tensor([[0.4, 0.6], [0.8, 0.2], [0.4, 0.6]] * 2)
        draft = torch.tensor([[0.8, 0.2], [0.2, 0.8], [0.8, 0.2]] * 2)
        uniform = torch.tensor([0.6, 0.9, 0.99, 0.6, 0.9, 0.9])
        emitted = run(
            "rejection_sample", implementation, integers(0, 0, 0, 0, 0, 0), integers(3, 6), target, draft,
            integers(1, 1, 1, 1, 1, 1), integers(7, 7), uniform, torch.ones(2), None, None, 3, True, 0.0, 0.0,
        )  # fmt: skip
        assert emitted.tolist() == [[0, 0, 1, -1], [0, 0, 0, 7]]

    def test_entropy_lowers_the_noise(self, implementation: str) -> None:
        # The factors are exp(-log(4) / 2) = 1/2 and, bounded, 0.8: 0.9 and 0.6 become 0.45 and 0.48.
        entropy = torch.tensor([math.log(4), 0.0, math.log(4), 0.0])
        uniform = torch.tensor([0.9, 0.6, 0.9, 0.65])
        emitted = run(
            "rejection_sample", implementation, integers(0, 0, 0, 0), integers(2, 4), torch.full((4, 2), 0.5), None,
            integers(1, 1, 1, 1), integers(7, 7), uniform, torch.ones(2), None, entropy, 2, False, 0.8, 0.5,
        )  # fmt: skip
        assert emitted.tolist() == [[0, 0, 7], [0, 1, -1]]

    def test_candidates_of_a_sharded_vocabulary(self, implementation: str) -> None:
        target, indices = torch.tensor([[0.7, 0.3, 0.0]] * 3), torch.tensor([[40, 90, 3]] * 3)
        emitted = run(
            "rejection_sample", implementation, integers(90, 40, 41), integers(1, 2, 3), guarded(target), None,
            integers(40, 40, 40), integers(5, 5, 5), torch.tensor([0.31, 0.69, 0.0]), torch.ones(3), indices, None, 1,
            False, 0.0, 0.0,
        )  # fmt: skip
        assert emitted.tolist() == [[40, -1], [40, 5], [40, -1]]

    @pytest.mark.parametrize(("requests", "drafts"), [(0, 3), (3, 0)], ids=str)
    def test_nothing_to_verify(self, implementation: str, requests: int, drafts: int) -> None:
        none = torch.empty(0, dtype=torch.int32)
        emitted = run(
            "rejection_sample", implementation, none, torch.zeros(requests, dtype=torch.int32), torch.empty(0, 8), None,
            none, torch.full((requests,), 4, dtype=torch.int32), torch.empty(0), torch.ones(requests), None, None, 3,
            False, 0.0, 0.0,
        )  # fmt: skip
        assert emitted.tolist() == [[4, -1, -1, -1]] * requests

    @settings(max_examples=6, deadline=None)
    @given(data=st.data())
    def test_kernel_and_definition_agree(self, implementation: str, data: st.DataObject) -> None:
        counts = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
        rows, block, seed = sum(counts), data.draw(st.booleans()), data.draw(st.integers(0, 99))
        generator = torch.Generator().manual_seed(seed)
        target, ids = distributions(rows, 6, seed=seed), torch.randint(-1, 6, (rows,), generator=generator)
        draft = distributions(rows, 6, seed=seed + 1) if data.draw(st.booleans()) else None
        entropy = target.log().mul(-target).sum(1) if data.draw(st.booleans()) else None
        temperature = torch.randint(2, (len(counts),), generator=generator).float()
        arguments = (
            ids, integers(*counts).cumsum(0).int(), target, draft, ids.int().clamp(min=1),
            torch.full_like(temperature, 9).int(), torch.rand(rows, generator=generator), temperature, None, entropy, 5,
            block, 0.9, 0.1,
        )  # fmt: skip
        actual = run("rejection_sample", implementation, *arguments)
        assert torch.equal(actual, run("rejection_sample", "naive", *arguments))
        # A row is drafts from the first on, one token more, and placeholders.
        for row, count in zip(actual.tolist(), counts):
            emitted = [token for token in row if token != -1]
            assert row == emitted + [-1] * (6 - len(emitted))
            assert len(emitted) in range(1, count + 2)


def test_verification_keeps_the_targets_distribution() -> None:
    target, draft = torch.tensor([0.5, 0.3, 0.2, 0.0]), torch.tensor([0.1, 0.2, 0.3, 0.4])
    count = 20_000
    generator = torch.Generator().manual_seed(0)
    ids = torch.multinomial(draft, count, replacement=True, generator=generator).int()
    rows, ones = (target.expand(count, 4), draft.expand(count, 4), ids), torch.ones(count)
    recovered = ascend_kernels.recovered_tokens(*rows, ones, *rows_of(count))
    emitted = ascend_kernels.rejection_sample(
        ids, torch.arange(1, count + 1).int(), *rows[:2], recovered, torch.zeros(count, dtype=torch.int32),
        torch.rand(count, generator=generator), ones, 1,
    )  # fmt: skip
    counts, expected = torch.bincount(emitted[:, 0], minlength=4), target.double() * count
    assert counts[3] == 0
    # Chi-squared with two degrees of freedom: above 13.8 once in 1,000.
    assert ((counts - expected) ** 2 / expected)[:3].sum() < 13.8


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestSmallOperators:
    @pytest.mark.usefixtures("small_blocks")
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=lambda dtype: str(dtype)[6:])
    @pytest.mark.parametrize(("count", "columns"), [(0, 3), (1, 1), (3, 299)], ids=str)
    def test_entropy(self, implementation: str, count: int, columns: int, dtype: torch.dtype) -> None:
        probs = distributions(count, columns).to(dtype)
        expected = -(probs.double() * (probs.double() + 1e-10).log()).sum(-1)
        assert_close(run("entropy", implementation, guarded(probs)), expected, "reduction")

    @pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int64], ids=lambda dtype: str(dtype)[6:])
    def test_values_of_requests(self, implementation: str, dtype: torch.dtype) -> None:
        values = torch.tensor([0, 7, 2, 0], dtype=dtype)
        expanded = run("expand_requests", implementation, values, integers(2, 2, 5, 6), 6, 0.0, 1.0)
        assert (expanded.tolist(), expanded.dtype) == ([1, 1, 2, 2, 2, 1], dtype)

    @pytest.mark.parametrize("requests", [0, 3])
    def test_no_rows(self, implementation: str, requests: int) -> None:
        counts = torch.zeros(requests, dtype=torch.int32)
        assert run("expand_requests", implementation, torch.ones(requests), counts, 0, 0.0, 1.0).shape == (0,)

    def test_more_rows_than_a_block(self, implementation: str) -> None:
        expanded = run("expand_requests", implementation, torch.ones(2) * 3, integers(200, 201), 201, 0.0, 1.0)
        assert expanded.tolist() == [3.0] * 201


@pytest.mark.parametrize(
    ("target", "most"), [(ASCEND_910B1, 48), (cuda_target(132), MAX_PROGRAMS)], ids=["npu", "cuda"]
)
def test_more_requests_than_programs(target, most: int) -> None:
    assert plan_rejection(target, 70_000, 8).programs == most
    assert plan_rejection(target, 3, 8).programs == 3


def test_operators_are_well_formed() -> None:
    probs, zero, ones = distributions(2, 8), torch.zeros(2, dtype=torch.int64), torch.ones(2)
    opcheck("recovered_tokens", probs, probs, zero, ones, zero, zero, zero, None)
    opcheck("entropy", probs)
    opcheck("expand_requests", ones, integers(1, 3), 3, 0.0, 1.0)
    vectors = (zero.int(), integers(1), torch.zeros(2), torch.ones(1))
    opcheck("rejection_sample", zero, integers(2), probs, None, *vectors, None, None, 2, False, 0.0, 0.0)


def test_arguments_that_do_not_belong_together_are_refused() -> None:
    probs, zero, ones = distributions(2, 8), torch.zeros(2, dtype=torch.int64), torch.ones(2)
    with pytest.raises(ValueError, match=r"draft_probs \(2, 7\) with target_probs \(2, 8\)"):
        ascend_kernels.recovered_tokens(probs, probs[:, :7], zero, ones, zero, zero, zero)
    with pytest.raises(ValueError, match=r"torch.float64: fp32"):
        ascend_kernels.recovered_tokens(probs.double(), None, zero, ones, zero, zero, zero)
    with pytest.raises(ValueError, match=r"uniform \(1,\) for 2 drafts"):
        ascend_kernels.rejection_sample(zero, integers(2), probs, None, zero.int(), integers(1), ones[:1], ones[:1], 2)
    with pytest.raises(ValueError, match=r"bonus \(2,\) for 1 requests"):
        ascend_kernels.rejection_sample(zero, integers(2), probs, None, zero.int(), zero.int(), ones, ones[:1], 2)
    with pytest.raises(ValueError, match=r"\(2,\) values and \(1,\) counts"):
        ascend_kernels.expand_requests(ones, integers(2), 2)
