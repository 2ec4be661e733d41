"""indexer_scores, top_blocks: float64 sums key by key as the oracle; pages that are not listed hold NaN."""

from __future__ import annotations

import pytest
import torch

import ascend_kernels
from ascend_kernels.ops.sparse.indexer_scores.plan import plan_indexer
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import IMPLEMENTATIONS, assert_close, guarded, opcheck, run

NONE = float("-inf")


def case(page: int, size: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Two requests in backward pages; tokens of both, one of which sees nothing."""
    generator = torch.Generator().manual_seed(size)
    cache = torch.full((7, page, size), float("nan"), dtype=dtype)
    table = torch.tensor([[6, 2, 0], [4, 1, 0]], dtype=torch.int32)
    cache[[6, 2, 4, 1]] = torch.randn(4, page, size, generator=generator).to(dtype)
    query = guarded(torch.randn(4, 5, size, generator=generator).to(dtype))
    weights = torch.randn(4, 5, generator=generator)
    requests, lengths = torch.tensor([1, 0, 0, 1]), torch.tensor([1, page + 1, 2 * page, 0])
    return query, weights, cache, table, requests, lengths


def expected(arguments: tuple[torch.Tensor, ...]) -> torch.Tensor:
    query, weights, cache, table, requests, lengths = arguments
    scores = torch.full((len(query), table.shape[1] * cache.shape[1]), NONE, dtype=torch.float64)
    for t, length in enumerate(lengths.tolist()):
        for s in range(length):
            key = cache[table[requests[t], s // cache.shape[1]], s % cache.shape[1]].double()
            scores[t, s] = sum(
                float(weights[t, h]) * max(float(query[t, h].double() @ key), 0.0) for h in range(query.shape[1])
            )
    return scores


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestIndexerScores:
    @pytest.mark.parametrize(("page", "size"), [(16, 16), (6, 33)], ids=str)
    def test_scores_of_keys_and_blocks(self, implementation: str, page: int, size: int) -> None:
        arguments = case(page, size, torch.float32)
        right = expected(arguments)
        for block in (1, 2, page):
            actual = run("indexer_scores", implementation, *arguments, block)
            assert_close(actual, right.unflatten(1, (-1, block)).amax(-1), "matmul")

    def test_fp16(self, implementation: str) -> None:
        arguments = case(16, 64, torch.float16)
        assert_close(run("indexer_scores", implementation, *arguments, 1).half(), expected(arguments), "matmul")


def test_top_blocks_keeps_the_first_and_the_last_and_marks_what_is_not_there() -> None:
    scores = torch.tensor([[0.5, 3.0, 9.0, 1.0], [2.0, 4.0, NONE, NONE], [NONE] * 4])
    chosen = ascend_kernels.top_blocks(scores, 3, torch.tensor([13, 5, 0]), block=4, first=1, last=1)
    assert [sorted(row) for row in chosen.tolist()] == [[0, 2, 3], [-1, 0, 1], [-1, -1, -1]]
    assert ascend_kernels.top_blocks(scores, 2, torch.tensor([16, 8, 0]), block=4).tolist() == [
        [2, 1],
        [1, 0],
        [-1, -1],
    ]
    assert ascend_kernels.top_blocks(scores[:1], 6, torch.tensor([16]), block=4).tolist() == [[2, 1, 3, 0, -1, -1]]


def test_tiles_lie_in_blocks_and_programs_within_the_grid() -> None:
    assert plan_indexer(cuda_target(132), 70_000, 64, 128, 128, 1, 4096).programs == 65535
    plan = plan_indexer(ASCEND_910B1, 1, 64, 128, 128, 64, 4096)
    assert (plan.span, plan.shares, plan.programs) == (64, 24, 24)
    assert plan_indexer(ASCEND_910B1, 100, 5, 33, 48, 1, 4096).span == 48


def test_operator_is_well_formed() -> None:
    opcheck("indexer_scores", *case(4, 8, torch.float32), 2)


def test_what_does_not_go_together_is_refused() -> None:
    query, weights, cache, table, requests, lengths = case(6, 8, torch.float32)
    for arguments, options, message in (
        ((query.half(), weights, cache, table, requests, lengths), {}, "of one dtype"),
        ((query, weights[:, :2], cache, table, requests, lengths), {}, "weights"),
        ((query, weights, cache, table, requests, lengths), {"block": 4}, "blocks of 4 keys in pages of 6"),
    ):
        with pytest.raises(ValueError, match=message):
            ascend_kernels.indexer_scores(*arguments, **options)
    with pytest.raises(ValueError, match="top_blocks: k 2"):
        ascend_kernels.top_blocks(torch.zeros(1, 4), 2, lengths[:1], first=2, last=1)
