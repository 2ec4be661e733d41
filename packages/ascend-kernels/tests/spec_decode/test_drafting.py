"""Between verification and the next drafts: literal cases and loops over Python lists as the oracle."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.testing import IMPLEMENTATIONS, guarded, opcheck, poisoned, run

DTYPES = pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=lambda dtype: str(dtype)[6:])


def integers(*values: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


def lookup(text: list[int], min_n: int, max_n: int, drafts: int, max_length: int) -> list[int]:
    """The drafts, from all pairs of places that agree."""
    agreeing = [
        (size, -place)
        for place in range(1, len(text))
        for size in range(min_n, max_n + 1)
        if size <= place and text[place - size : place] == text[len(text) - size :]
    ]
    if not agreeing:
        return []
    place = -max(agreeing)[1]
    return text[place : place + max(0, min(drafts, max_length - len(text)))]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestNgramDrafts:
    @DTYPES
    def test_the_longest_suffix_at_its_first_place(self, implementation: str, dtype: torch.dtype) -> None:
        # 1 2 occurs twice, 9 1 2 once; 7 nowhere else; 4 4 4 overlaps itself.
        texts = torch.tensor(
            [
                [1, 2, 3, 9, 1, 2, 5, 6, 9, 1, 2],
                [1, 2, 3, 1, 2, 4, 1, 2, 0, 0, 0],
                [5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0],
                [4] * 11,
            ],
            dtype=dtype,
        )
        ids, counts = run("ngram_drafts", implementation, guarded(texts), integers(11, 8, 3, 3), 1, 3, 3, 100)
        assert ids.tolist() == [[5, 6, 9], [3, 1, 2], [-1, -1, -1], [4, -1, -1]]
        assert counts.tolist() == [3, 3, 0, 1]

    def test_no_drafts_beyond_the_longest_text(self, implementation: str) -> None:
        texts = torch.tensor([[1, 2, 3, 4] * 4] * 4)
        ids, counts = run("ngram_drafts", implementation, texts, integers(14, 16, 15, 0), 2, 3, 5, 16)
        assert counts.tolist() == [2, 0, 1, 0]
        assert ids.tolist() == [[3, 4, -1, -1, -1], [-1] * 5, [4, -1, -1, -1, -1], [-1] * 5]

    def test_no_requests(self, implementation: str) -> None:
        ids, counts = run("ngram_drafts", implementation, torch.empty(0, 8, dtype=torch.int64), integers(), 1, 2, 3, 9)
        assert (ids.shape, counts.shape) == ((0, 3), (0,))

    @settings(max_examples=8, deadline=None)
    @given(data=st.data())
    def test_random_texts(self, implementation: str, data: st.DataObject) -> None:
        texts = data.draw(st.lists(st.lists(st.integers(0, 2), min_size=20, max_size=20), min_size=1, max_size=3))
        lengths = [data.draw(st.integers(0, 20)) for _ in texts]
        min_n = data.draw(st.integers(1, 3))
        limits = (min_n, data.draw(st.integers(min_n, 5)), data.draw(st.integers(1, 5)), data.draw(st.integers(10, 30)))
        ids, counts = run("ngram_drafts", implementation, torch.tensor(texts), integers(*lengths), *limits)
        expected = [lookup(text[:length], *limits) for text, length in zip(texts, lengths)]
        assert counts.tolist() == [len(drafts) for drafts in expected]
        assert ids.tolist() == [drafts + [-1] * (limits[2] - len(drafts)) for drafts in expected]


def test_a_text_that_grows_by_accepted_tokens_alone_keeps_its_history() -> None:
    # Three steps; the drafts that verification rejects never enter the text.
    text = torch.zeros(1, 12, dtype=torch.int64)
    text[0, :5] = torch.tensor([1, 2, 3, 1, 2])
    length, proposed = 5, []
    for accepted in ([3], [7], [1, 2]):
        ids, counts = ascend_kernels.ngram_drafts(text, integers(length), 2, 3, 2, 12)
        proposed.append(ids[0, : counts[0]].tolist())
        text[0, length : length + len(accepted)] = torch.tensor(accepted)
        length += len(accepted)
    assert proposed == [[3, 1], [1, 2], []]
    assert text[0, :length].tolist() == [1, 2, 3, 1, 2, 3, 7, 1, 2]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestNextTokens:
    @DTYPES
    @pytest.mark.parametrize("discarding", [False, True], ids=["all", "discarded"])
    def test_last_valid_token(self, implementation: str, dtype: torch.dtype, discarding: bool) -> None:
        sampled = torch.tensor([[5, 6, -1], [-1, -1, -1], [8, 9, 7], [0, 9, -1]], dtype=dtype)
        discarded = torch.tensor([False, False, True, False]) if discarding else None
        tokens, counts = run("next_tokens", implementation, guarded(sampled), integers(1, 2, 3, 4), discarded, 9)
        assert tokens.tolist() == [6, 2, 3 if discarding else 7, 0]
        assert counts.tolist() == [2, 0, 0 if discarding else 2, 1]

    def test_no_requests(self, implementation: str) -> None:
        none = torch.empty(0, dtype=torch.int32)
        tokens, counts = run("next_tokens", implementation, none.view(0, 1), none, None, 9)
        assert (tokens.shape, counts.shape) == ((0,), (0,))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestPaddedInputs:
    def test_literal_values(self, implementation: str) -> None:
        # Three drafts of which one holds (two tokens), none, one that holds; rows 0-3, 4-8 of a prompt, 9-10.
        arguments = (integers(3, 3, 4), integers(2, 1, 2), integers(0, 4, 9, 11))
        indices, rejected = run("padded_inputs", implementation, *arguments)
        assert (indices.tolist(), rejected.tolist()) == ([1, 8, 10], [2, 0, 0])

    @pytest.mark.parametrize("requests", [0, 1, 600])
    def test_any_number_of_requests(self, implementation: str, requests: int) -> None:
        generator = torch.Generator().manual_seed(0)
        drafts = torch.randint(4, (requests,), generator=generator)
        valid = (torch.rand(requests, generator=generator) * (drafts + 1)).long() + 1
        starts = torch.cat([torch.zeros(1), (drafts + 1).cumsum(0)]).int()
        indices, rejected = run("padded_inputs", implementation, drafts.cumsum(0).int(), valid.int(), starts)
        expected = [d + 1 - v if d else 0 for d, v in zip(drafts.tolist(), valid.tolist())]
        assert rejected.tolist() == expected
        assert indices.tolist() == [end - 1 - r for end, r in zip(starts[1:].tolist(), expected)]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestContextParallelSlots:
    @pytest.mark.parametrize("slots_dtype", [torch.int32, torch.int64], ids=lambda dtype: str(dtype)[6:])
    @pytest.mark.parametrize(("ranks", "interleave", "blocks"), [(1, 1, 1), (2, 1, 1), (3, 2, 2), (2, 4, 1)], ids=str)
    def test_every_position_has_one_slot_in_order(
        self, implementation: str, ranks: int, interleave: int, blocks: int, slots_dtype: torch.dtype
    ) -> None:
        # Each rank writes its own blocks; a sequence of 40 tokens, told by turns, fills them from the front.
        block_size, length = 4, 40
        table = guarded(torch.stack([torch.arange(12), torch.arange(12) + 50]).int())
        positions = torch.cat([torch.arange(length), torch.arange(7)])
        for rank in range(ranks):
            slots = poisoned(50, dtype=slots_dtype)
            run(
                "context_parallel_slots", implementation, integers(0, length, length + 7), positions, table, block_size,
                blocks, ranks, rank, interleave, slots, -1,
            )  # fmt: skip
            own = [p for p in range(length) if p // interleave % ranks == rank]
            assert [slots[p].item() for p in own] == list(range(len(own)))
            second = [p for p in range(7) if p // interleave % ranks == rank]
            assert [slots[length + p].item() for p in second] == [50 * block_size + i for i in range(len(second))]
            assert (slots >= 0).sum() == len(own) + len(second)
            assert slots[47:].tolist() == [-1] * 3

    def test_block_numbers_beyond_24_bits(self, implementation: str) -> None:
        slots, table = poisoned(1, dtype=torch.int32), integers(2**24 + 1).view(1, 1)
        arguments = (integers(0, 1), torch.tensor([7]), table, 8, 1, 1, 0, 1, slots, -1)
        run("context_parallel_slots", implementation, *arguments)
        assert slots.tolist() == [(2**24 + 1) * 8 + 7]

    def test_no_tokens(self, implementation: str) -> None:
        slots = poisoned(2, dtype=torch.int32)
        none, table = torch.empty(0, dtype=torch.int64), torch.zeros(0, 1, dtype=torch.int32)
        run("context_parallel_slots", implementation, integers(0), none, table, 4, 1, 2, 1, 1, slots, -7)
        assert slots.tolist() == [-7, -7]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestParallelDraftInputs:
    @pytest.mark.parametrize("padded", [False, True], ids=["dropped", "padded"])
    def test_literal_values(self, implementation: str, padded: bool) -> None:
        # Last accepted positions 6 and 29 (of 6 to 8 and 29), pages of 4 tokens, sequences of at most 32.
        starts, positions = (
            (integers(0, 3, 4), torch.tensor([6, 7, 8, 29])) if padded else (integers(0, 1, 2), torch.tensor([6, 29]))
        )
        table = guarded(torch.stack([torch.arange(8) + 10, torch.arange(8) + 50]).int())
        ids, places, slots = run(
            "parallel_draft_inputs", implementation, integers(5, 6), positions, starts,
            integers(2, 0) if padded else None, table, 4, 3, 99, 32, -1,
        )  # fmt: skip
        assert ids.tolist() == [5, 99, 99, 6, 99, 99]
        assert places.tolist() == [7, 8, 9, 30, 31, 31]
        assert slots.tolist() == [11 * 4 + 3, 12 * 4, 12 * 4 + 1, 57 * 4 + 2, 57 * 4 + 3, -1]
        assert (ids.dtype, places.dtype, slots.dtype) == (torch.int32, torch.int64, torch.int32)

    def test_each_cache_has_its_own_table_and_page_size(self, implementation: str) -> None:
        arguments = (integers(5), torch.tensor([200]), integers(0, 1), None)
        for table, size, slot in (([[3, 4]], 128, 4 * 128 + 73), ([[7]], 512, 7 * 512 + 201)):
            inputs = run(
                "parallel_draft_inputs", implementation, *arguments, torch.tensor(table).int(), size, 1, 99, 512, -1
            )
            assert inputs[2].tolist() == [slot]

    def test_no_requests(self, implementation: str) -> None:
        none, table = torch.empty(0, dtype=torch.int64), torch.zeros(0, 1, dtype=torch.int32)
        inputs = run("parallel_draft_inputs", implementation, none, none, integers(0), None, table, 4, 3, 99, 32, -1)
        assert [value.shape for value in inputs] == [(0,)] * 3


def test_operators_are_well_formed() -> None:
    vector = integers(1, 2)
    opcheck("ngram_drafts", torch.ones(2, 8, dtype=torch.int64), vector, 1, 2, 3, 9)
    opcheck("next_tokens", vector[:, None], vector, torch.tensor([True, False]), 5)
    opcheck("padded_inputs", vector, vector, integers(0, 2, 4))
    opcheck(
        "parallel_draft_inputs", vector, torch.arange(4), integers(0, 2, 4), vector, vector[:, None], 8, 3, 9, 8, -1
    )
    slots = poisoned(3, dtype=torch.int64)
    opcheck("context_parallel_slots", integers(0, 2), torch.arange(2), vector[None], 4, 1, 2, 1, 1, slots, -1)


def test_arguments_that_do_not_belong_together_are_refused() -> None:
    vector = integers(1, 2)
    with pytest.raises(ValueError, match=r"min_n 3, max_n 2"):
        ascend_kernels.ngram_drafts(vector[:, None], vector, 3, 2, 1, 9)
    with pytest.raises(ValueError, match=r"backup \(1,\) for 2 requests"):
        ascend_kernels.next_tokens(vector[:, None], vector[:1], None, 5)
    with pytest.raises(ValueError, match=r"query_start_loc \(2,\)"):
        ascend_kernels.padded_inputs(vector, vector, vector)
    with pytest.raises(ValueError, match=r"rank 2 of 2"):
        ascend_kernels.context_parallel_slots(vector, vector, vector[None], 4, vector, ranks=2, rank=2)
    with pytest.raises(ValueError, match=r"turns must fill a page"):
        ascend_kernels.context_parallel_slots(vector, vector, vector[None], 4, vector, ranks=2, rank=1, interleave=3)
    with pytest.raises(ValueError, match=r"block_table \(1, 2\)"):
        ascend_kernels.parallel_draft_inputs(
            vector, vector, integers(0, 1, 2), vector[None], 4, queries=2, mask_token=0, max_length=8
        )
