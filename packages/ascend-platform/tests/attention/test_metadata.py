"""Lengths under graph padding: the operator wants the last query end to be the number of rows."""

from __future__ import annotations

import pytest

from vllm_ascend.attention.metadata import pad_requests


@pytest.mark.parametrize(
    ("ends", "lens", "rows", "query_len", "expected"),
    [
        ([1, 2, 3], [5, 6, 7], 3, 1, ([1, 2, 3], [5, 6, 7])),
        ([1, 2, 3, 3], [5, 6, 7, 0], 4, 1, ([1, 2, 3, 4], [5, 6, 7, 1])),
        ([1, 1, 1, 1], [9, 0, 0, 0], 4, 1, ([1, 2, 3, 4], [9, 1, 1, 1])),
        ([3, 6, 6], [9, 8, 0], 9, 3, ([3, 6, 9], [9, 8, 3])),
        ([3, 3], [9, 0], 5, 3, ([3, 5], [9, 2])),
        ([4, 20], [30, 16], 20, 16, ([4, 20], [30, 16])),
        ([], [], 0, 1, ([], [])),
    ],
    ids=["full", "one-padded", "three-padded", "drafts", "partial", "prefill", "empty"],
)
def test_padding_requests(ends, lens, rows, query_len, expected) -> None:
    assert pad_requests(ends, lens, rows, query_len) == expected


def test_padding_without_an_empty_request_is_refused() -> None:
    with pytest.raises(RuntimeError, match="pad the batch by whole requests"):
        pad_requests([1, 2], [5, 5], 4, 1)
