"""token_counts, apply_penalties and apply_bad_words: loops over Python lists as the oracle."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.sampling.token_counts.plan import plan_token_counts
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 3).to(dtype)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestTokenCounts:
    @pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=short_name)
    def test_padding_is_not_counted(self, implementation: str, dtype: torch.dtype) -> None:
        tokens = torch.tensor([[1, 5, 5], [-1, 4, 1], [4, 4, 4]], dtype=dtype)
        counts = run("token_counts", implementation, guarded(tokens), 5)
        assert counts.tolist() == [[0, 1, 0, 0, 0], [0, 1, 0, 0, 1], [0, 0, 0, 0, 3]]
        assert (counts.dtype, counts.is_contiguous()) == (torch.int32, True)

    @pytest.mark.parametrize("shape", [(0, 3), (3, 0)], ids=str)
    def test_no_tokens(self, implementation: str, shape: tuple[int, int]) -> None:
        counts = run("token_counts", implementation, torch.empty(shape, dtype=torch.int64), 4)
        assert counts.tolist() == [[0] * 4] * shape[0]

    @settings(max_examples=8, deadline=None)
    @given(data=st.data())
    def test_random_tokens(self, implementation: str, data: st.DataObject) -> None:
        length, vocab = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 9))
        tokens = data.draw(
            st.lists(st.lists(st.integers(-1, vocab + 1), min_size=length, max_size=length), min_size=1, max_size=4)
        )
        counts = run("token_counts", implementation, torch.tensor(tokens).t().contiguous().t(), vocab)
        assert counts.tolist() == [[Counter(row)[token] for token in range(vocab)] for row in tokens]


@pytest.mark.parametrize(
    ("target", "most"), [(ASCEND_910B1, 48), (cuda_target(132), MAX_PROGRAMS)], ids=["npu", "cuda"]
)
def test_more_tiles_than_programs(target, most: int) -> None:
    # 384 rows of 50,001 tokens: 75,264 tiles of 256 tokens, more than a grid can have.
    assert plan_token_counts(target, 384, 50_001).programs == min(384 * 49, most)
    assert plan_token_counts(target, 70_000, 1000).programs == most


def penalised(logit: float, prompt: int, output: int, repetition: float, frequency: float, presence: float) -> float:
    if prompt or output:
        logit = logit / repetition if logit > 0 else logit * repetition
    return logit - frequency * output - (presence if output else 0)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestPenalties:
    def test_generated_tokens_and_those_in_flight_are_penalised(self, implementation: str) -> None:
        # Prompt [1], outputs [2, 2], then drafts 3 and 0 with a placeholder behind them.
        logits = torch.full((4, 5), 3.0)
        prompt, output = (
            torch.tensor([[0, 1, 0, 0, 0]], dtype=torch.int32),
            torch.tensor([[0, 0, 2, 0, 0]], dtype=torch.int32),
        )
        factors = torch.tensor([1.5]), torch.tensor([0.5]), torch.tensor([0.25])
        owner, ids = torch.zeros(4, dtype=torch.int32), torch.tensor([2, 3, 0, -1])
        run(
            "apply_penalties",
            implementation,
            logits,
            prompt,
            output,
            *factors,
            owner,
            ids,
            torch.arange(4, dtype=torch.int32),
        )
        assert logits.tolist() == [
            [3, 2, 0.75, 3, 3],
            [3, 2, 0.75, 1.25, 3],
            [1.25, 2, 0.75, 1.25, 3],
            [1.25, 2, 0.75, 1.25, 3],
        ]

    @pytest.mark.usefixtures("small_blocks")
    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize(("count", "vocab"), [(1, 1), (3, 33), (5, 70)], ids=str)
    def test_formula(self, implementation: str, count: int, vocab: int, dtype: torch.dtype) -> None:
        original = rows(count, vocab, dtype=dtype)
        logits = guarded(original)
        generator = torch.Generator().manual_seed(1)
        prompt, output = (torch.randint(3, (2, vocab), generator=generator, dtype=torch.int32) for _ in range(2))
        factors = torch.tensor([1.5, 0.5]), torch.tensor([0.5, 0.0]), torch.tensor([-0.5, 1.0])
        owner = torch.arange(count) % 2
        run("apply_penalties", implementation, logits, guarded(prompt), guarded(output), *factors, owner, None, None)
        expected = [
            [
                penalised(
                    original[row, token].item(), int(prompt[row % 2, token]), int(output[row % 2, token]),
                    *(factor[row % 2].item() for factor in factors),
                )
                for token in range(vocab)
            ]
            for row in range(count)
        ]  # fmt: skip
        assert_close(logits, torch.tensor(expected, dtype=torch.float64), "elementwise")

    def test_no_rows(self, implementation: str) -> None:
        counts, factors = torch.zeros(2, 8, dtype=torch.int32), torch.ones(2)
        run(
            "apply_penalties",
            implementation,
            torch.empty(0, 8),
            counts,
            counts,
            factors,
            factors,
            factors,
            None,
            None,
            None,
        )


def packed(words: list[list[list[int]]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Words of each request as tokens, starts and first words."""
    flat = [word for request in words for word in request]
    starts, first = [0], [0]
    for word in flat:
        starts.append(starts[-1] + len(word))
    for request in words:
        first.append(first[-1] + len(request))
    tokens = [token for word in flat for token in word]
    return tuple(torch.tensor(values, dtype=torch.int32) for values in (tokens, starts, first))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestBadWords:
    def test_drafts_continue_the_output(self, implementation: str) -> None:
        # Committed 5, drafts 6 and 7; the words are 6 7 and 5 6.
        logits = torch.zeros(3, 8)
        run(
            "apply_bad_words", implementation, logits, *packed([[[6, 7], [5, 6]]]), torch.tensor([[5, -9]]),
            torch.tensor([1], dtype=torch.int32), torch.zeros(3, dtype=torch.int32), torch.tensor([5, 6, 7]),
            torch.arange(3, dtype=torch.int32),
        )  # fmt: skip
        assert logits.isneginf().nonzero().tolist() == [[0, 6], [1, 7]]

    def test_words_of_one_token_empty_words_and_words_longer_than_the_output(self, implementation: str) -> None:
        logits = torch.zeros(2, 8)
        words = packed([[[3], [], [1, 2, 4], [9], [-1]], [[2, 5], [1, 6], [7, 7]]])
        output, lengths = torch.tensor([[2, 0, 0], [7, 1, 7]]), torch.tensor([1, 2], dtype=torch.int32)
        run("apply_bad_words", implementation, logits, *words, output, lengths, None, None, None)
        assert logits.isneginf().nonzero().tolist() == [[0, 3], [1, 6]]

    @settings(max_examples=8, deadline=None)
    @given(data=st.data())
    def test_random_words(self, implementation: str, data: st.DataObject) -> None:
        token = st.integers(0, 2)
        words = data.draw(st.lists(st.lists(st.lists(token, max_size=3), max_size=3), min_size=1, max_size=3))
        outputs = [data.draw(st.lists(token, min_size=5, max_size=5)) for _ in words]
        lengths = [data.draw(st.integers(0, 5)) for _ in words]
        logits = guarded(torch.zeros(len(words), 3, dtype=torch.bfloat16))
        run(
            "apply_bad_words", implementation, logits, *packed(words), torch.tensor(outputs),
            torch.tensor(lengths, dtype=torch.int32), None, None, None,
        )  # fmt: skip
        for row, request in enumerate(words):
            sequence = outputs[row][: lengths[row]]
            banned = {
                w[-1] for w in request if w and len(w) - 1 <= len(sequence) and [*sequence, w[-1]][-len(w) :] == w
            }
            assert {index for index in range(3) if logits[row, index] != 0} == banned

    def test_no_rows(self, implementation: str) -> None:
        none = torch.empty(0, dtype=torch.int32)
        run("apply_bad_words", implementation, torch.empty(0, 8), *packed([]), none.view(0, 0), none, None, None, None)


def test_operators_are_well_formed() -> None:
    counts, factors, integers = torch.zeros(2, 8, dtype=torch.int32), torch.ones(2), torch.zeros(2, dtype=torch.int32)
    opcheck("token_counts", counts, 5)
    opcheck("apply_penalties", rows(2, 8), counts, counts, factors, factors, factors, integers, integers, integers)
    opcheck("apply_bad_words", rows(2, 8), *packed([[[1]], [[2]]]), counts, integers, None, None, None)


def test_arguments_that_do_not_belong_together_are_refused() -> None:
    counts, factors, integers = torch.zeros(2, 8, dtype=torch.int32), torch.ones(2), torch.zeros(2, dtype=torch.int32)
    with pytest.raises(ValueError, match=r"prompt_counts \(2, 7\).*\[2, 8\]"):
        ascend_kernels.apply_penalties(rows(2, 8), counts[:, :7], counts, factors, factors, factors)
    with pytest.raises(ValueError, match="given together or not at all"):
        ascend_kernels.apply_penalties(rows(2, 8), counts, counts, factors, factors, factors, input_ids=integers)
    with pytest.raises(ValueError, match=r"output_ids \(1, 8\).*each of 2 requests"):
        ascend_kernels.apply_bad_words(rows(2, 8), *packed([[[1]], [[2]]]), counts[:1], integers)
    with pytest.raises(ValueError, match=r"float32: an int32 or int64 matrix"):
        ascend_kernels.token_counts(torch.zeros(2, 3), 5)
