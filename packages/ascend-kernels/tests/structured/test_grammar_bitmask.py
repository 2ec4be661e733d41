"""grammar_bitmask: Python's integers as the oracle."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.ops.structured.grammar_bitmask.plan import plan_bitmask
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, opcheck, run


def masks(count: int, words: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(2**31), 2**31, (count, words), generator=generator).int()


def oracle(logits: torch.Tensor, bitmask: torch.Tensor, rows: list[int]) -> torch.Tensor:
    result = logits.clone()
    for words, row in zip(bitmask.tolist(), rows):
        for token in range(logits.shape[1]):
            if row >= 0 and not (words[token // 32] >> (token % 32)) & 1:
                result[row, token] = float("-inf")
    return result


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestGrammarBitmask:
    def test_literal_values(self, implementation: str) -> None:
        logits = torch.arange(34.0)[None]
        # Tokens 0, 2 and 31 of the first word, 33 of the second.
        run("grammar_bitmask", implementation, logits, torch.tensor([[5 - 2**31, 2]]).int(), torch.tensor([0]))
        allowed = [token for token, value in enumerate(logits[0].tolist()) if value != float("-inf")]
        assert allowed == [0, 2, 31, 33]
        assert logits[0, allowed].tolist() == [0.0, 2.0, 31.0, 33.0]

    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize("vocabulary", [1, 31, 33, 100, 4097])
    def test_vocabularies_of_any_size(self, implementation: str, vocabulary: int, dtype: torch.dtype) -> None:
        wide = torch.full((4, vocabulary + 3), float("nan"), dtype=dtype)
        logits = wide[:, 1 : vocabulary + 1]
        logits.copy_(torch.randn(4, vocabulary))
        bitmask, rows = masks(3, -(-vocabulary // 32) + 1), [2, -1, 0]
        expected = oracle(logits, bitmask, rows)
        run("grammar_bitmask", implementation, logits, bitmask, torch.tensor(rows))
        assert torch.equal(logits, expected)
        assert wide[:, 0].isnan().all()
        assert wide[:, vocabulary + 1 :].isnan().all()

    @pytest.mark.parametrize(("batch", "vocabulary"), [(0, 64), (2, 0)], ids=str)
    def test_nothing_to_mask(self, implementation: str, batch: int, vocabulary: int) -> None:
        logits = torch.zeros(batch, vocabulary)
        run("grammar_bitmask", implementation, logits, masks(batch, 2), torch.arange(batch))
        assert torch.equal(logits, torch.zeros(batch, vocabulary))

    @settings(max_examples=3, deadline=None)
    @given(batch=st.integers(1, 5), vocabulary=st.integers(1, 200))
    def test_random_shapes(self, implementation: str, batch: int, vocabulary: int) -> None:
        logits, bitmask = torch.randn(batch, vocabulary), masks(batch, -(-vocabulary // 32), seed=vocabulary)
        expected = oracle(logits, bitmask, list(range(batch)))
        run("grammar_bitmask", implementation, logits, bitmask, torch.arange(batch))
        assert torch.equal(logits, expected)


def test_programs_stay_within_the_grid() -> None:
    assert plan_bitmask(cuda_target(132), 4096, 4748).programs == 65535
    assert plan_bitmask(ASCEND_910B1, 4096, 4748).programs == 48


def test_operator_is_well_formed_and_rows_default_to_their_own() -> None:
    opcheck("grammar_bitmask", torch.randn(2, 40), masks(2, 2), torch.tensor([1, 0]))
    logits, bitmask = torch.randn(3, 40), masks(2, 2)
    expected = oracle(logits, bitmask, [0, 1])
    ascend_kernels.grammar_bitmask(logits, bitmask)
    assert torch.equal(logits, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bitmask": torch.zeros(2, 1).int()}, r"\[masks, 2 or more\]"),
        ({"bitmask": torch.zeros(2, 2)}, "bitmask torch.float32"),
        ({"rows": torch.zeros(3).int()}, r"rows \(3,\)"),
        ({"bitmask": torch.zeros(4, 2).int()}, "4 masks, 3 rows of logits"),
        ({"logits": torch.zeros(40, 3).t()}, "must end in 1"),
    ],
    ids=["words", "dtype", "rows", "masks", "strides"],
)
def test_what_does_not_go_together_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ascend_kernels.grammar_bitmask(**({"logits": torch.zeros(3, 40), "bitmask": torch.zeros(2, 2).int()} | change))
