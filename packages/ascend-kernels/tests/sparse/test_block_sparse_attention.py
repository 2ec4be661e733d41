"""block_sparse_attention: float64 softmax over the keys of the listed blocks as the oracle."""

from __future__ import annotations

import pytest
import torch

import ascend_kernels
from ascend_kernels.testing import IMPLEMENTATIONS, assert_close, opcheck, run

PAGE = 8
TABLE = torch.tensor([[6, 2, 0], [4, 1, 3]], dtype=torch.int32)
REQUESTS = torch.tensor([1, 0, 0, 1])
LENGTHS = torch.tensor([1, PAGE + 1, 2 * PAGE, 3 * PAGE - 2])


def case(dtype: torch.dtype, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(size)
    key, value = (torch.randn(7, PAGE, 2, size, generator=generator).to(dtype) for _ in range(2))
    return torch.randn(4, 4, size, generator=generator).to(dtype), key, value


def expected(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, blocks: torch.Tensor, block: int
) -> tuple[torch.Tensor, torch.Tensor]:
    outputs = torch.zeros(query.shape, dtype=torch.float64)
    lses = torch.full(query.shape[:2], float("-inf"), dtype=torch.float64)
    for t, length in enumerate(LENGTHS.tolist()):
        for head in range(query.shape[1]):
            keys, values = (c[TABLE[REQUESTS[t]].long()].flatten(0, 1)[:, head // 2].double() for c in (key, value))
            listed = blocks[t, head // 2].tolist()
            seen = [s for s in range(length) if s // block in listed]
            if seen:
                scores = keys[seen] @ query[t, head].double() * 0.3
                outputs[t, head], lses[t, head] = scores.softmax(0) @ values[seen], scores.logsumexp(0)
    return outputs, lses


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize(
    ("block", "size", "dtype"), [(8, 16, torch.float32), (4, 33, torch.float16), (16, 16, torch.float32)], ids=str
)
def test_listed_blocks_alone_count(implementation: str, block: int, size: int, dtype: torch.dtype) -> None:
    query, key, value = case(dtype, size)
    # Kv heads differ; none, blocks behind what is seen, and for the first token nothing at all under one head.
    blocks = torch.tensor(
        [[[0, -1, 2], [-1, -1, 1]], [[1, 0, -1], [2, -1, 0]], [[-1, 1, -1], [0, 1, -1]], [[1, 0, 2], [-1, 2, 1]]]
    )
    results = run(
        "block_sparse_attention", implementation, query, key, value, TABLE, REQUESTS, LENGTHS, blocks, block,
        None, None, None, 0.3, 0.0,
    )  # fmt: skip
    for actual, right in zip(results, expected(query, key, value, blocks, block)):
        assert_close(actual, right, "matmul")


def test_all_blocks_are_all_of_attention() -> None:
    query, key, value = case(torch.float32, 16)
    blocks = torch.arange(3).expand(4, 1, 3)
    sparse = ascend_kernels.block_sparse_attention(query, key, value, TABLE, REQUESTS, LENGTHS, blocks, PAGE)
    dense = ascend_kernels.paged_decode_attention(query, key, value, TABLE[REQUESTS], LENGTHS)
    for actual, right in zip(sparse, dense):
        assert_close(actual, right, "matmul")


def test_operator_is_well_formed() -> None:
    blocks = torch.zeros(4, 2, 1, dtype=torch.int64)
    opcheck(
        "block_sparse_attention", *case(torch.float32, 8), TABLE, REQUESTS, LENGTHS, blocks, 8, None, None, None, 0.3,
        0.0,
    )  # fmt: skip


def test_what_does_not_go_together_is_refused() -> None:
    query, key, value = case(torch.float32, 8)
    with pytest.raises(ValueError, match="blocks of 3 keys in pages of 8"):
        ascend_kernels.block_sparse_attention(
            query, key, value, TABLE, REQUESTS, LENGTHS, torch.zeros(4, 1, 1).int(), 3
        )
    with pytest.raises(ValueError, match="kv_heads or 1, selected"):
        ascend_kernels.block_sparse_attention(
            query, key, value, TABLE, REQUESTS, LENGTHS, torch.zeros(4, 3, 1).int(), 8
        )
