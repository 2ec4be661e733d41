"""context_parallel_metadata: a list of the batch's tokens, cut in Python, as the oracle."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.testing import IMPLEMENTATIONS, opcheck, run


def by_tokens(queries: list[int], lengths: list[int], begin: int, end: int) -> tuple[list[int], list[int], list[int]]:
    """Starts, visible lengths and first positions, from each token's request and position."""
    tokens = [
        (request, length - count + i)
        for request, (count, length) in enumerate(zip(queries, lengths))
        for i in range(count)
    ]
    mine = tokens[begin:end]
    counts = [sum(1 for request, _ in mine if request == r) for r in range(len(queries))]
    seen = [max((position + 1 for request, position in mine if request == r), default=0) for r in range(len(queries))]
    starts = [sum(counts[:r]) for r in range(len(queries) + 1)]
    return starts, seen, [length - count for count, length in zip(queries, lengths)]


def starts_of(queries: list[int]) -> torch.Tensor:
    return torch.tensor([sum(queries[:i]) for i in range(len(queries) + 1)])


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestContextParallelMetadata:
    def test_a_request_over_two_ranks(self, implementation: str) -> None:
        # Requests of 4 and 6 new tokens behind 0 and 10 earlier ones; ranks of 5 tokens.
        starts, lengths = torch.tensor([0, 4, 10], dtype=torch.int32), torch.tensor([4, 16], dtype=torch.int32)
        for bounds, expected in {
            (0, 5): ([0, 4, 5], [4, 11], [0, 10]),
            (5, 10): ([0, 0, 5], [0, 16], [0, 10]),
            (10, 15): ([0, 0, 0], [0, 0], [0, 10]),
        }.items():
            results = run("context_parallel_metadata", implementation, starts, lengths, *bounds)
            assert tuple(result.tolist() for result in results) == expected

    @settings(max_examples=10, deadline=None)
    @given(
        requests=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), max_size=6),
        bounds=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    )
    def test_random_batches(
        self, implementation: str, requests: list[tuple[int, int]], bounds: tuple[int, int]
    ) -> None:
        queries, lengths = [new for new, _ in requests], [new + old for new, old in requests]
        arguments = starts_of(queries), torch.tensor(lengths, dtype=torch.int64), *sorted(bounds)
        results = run("context_parallel_metadata", implementation, *arguments)
        assert tuple(result.tolist() for result in results) == by_tokens(queries, lengths, *sorted(bounds))

    def test_more_requests_than_a_tile(self, implementation: str) -> None:
        queries = [1] * 1500
        results = run("context_parallel_metadata", implementation, starts_of(queries), torch.full((1500,), 7), 9, 1300)
        assert tuple(result.tolist() for result in results) == by_tokens(queries, [7] * 1500, 9, 1300)


def test_operator_is_well_formed() -> None:
    opcheck("context_parallel_metadata", torch.tensor([0, 2, 3]), torch.tensor([2, 5]), 1, 3)


def test_what_does_not_go_is_refused() -> None:
    with pytest.raises(ValueError, match="tokens from 3 to 2"):
        ascend_kernels.context_parallel_metadata(torch.tensor([0, 2]), torch.tensor([2]), 3, 2)
    with pytest.raises(ValueError, match="query_start_loc"):
        ascend_kernels.context_parallel_metadata(torch.tensor([0, 2]), torch.tensor([2, 3]), 0, 2)
