"""rope: turning as multiplication of complex numbers, element by element, as the oracle."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.rope.rope.plan import plan_rope
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, opcheck, run


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def cache(count: int, half: int) -> torch.Tensor:
    """Cosines and sines side by side, as models keep them."""
    angles = torch.outer(torch.arange(count).double(), 10000.0 ** (-torch.arange(half).double() / half))
    return torch.cat((angles.cos(), angles.sin()), -1).float()


def oracle(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> torch.Tensor:
    """``(a + ib) (cos + i sin)`` for every pair; cos and sin are ``[tokens, half]``."""
    half = cos.shape[-1]
    result = heads.double().clone()
    first = slice(0, 2 * half, 2) if interleaved else slice(0, half)
    second = slice(1, 2 * half, 2) if interleaved else slice(half, 2 * half)
    numbers = torch.complex(result[..., first], result[..., second])
    numbers = numbers * torch.complex(cos.double(), sin.double())[:, None]
    result[..., first], result[..., second] = numbers.real, numbers.imag
    return result


def axis_of(pair: int, section: list[int], interleaved: bool) -> int:
    if not interleaved:
        return 0 if pair < section[0] else 1 if pair < section[0] + section[1] else 2
    return next((axis for axis in (1, 2) if pair % 3 == axis and pair < 3 * section[axis]), 0)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestRope:
    @pytest.mark.parametrize("interleaved", [False, True], ids=["halves", "pairs"])
    def test_literal_quarter_turn(self, implementation: str, interleaved: bool) -> None:
        query = torch.tensor([[[1.0, 2.0, 3.0, 4.0, 9.0]]])
        zero, one = torch.zeros(1, 2), torch.ones(1, 2)
        run("rope", implementation, query, None, zero, one, None, interleaved, [], False)
        assert query.tolist() == [[[-2.0, 1.0, -4.0, 3.0, 9.0] if interleaved else [-3.0, -4.0, 1.0, 2.0, 9.0]]]

    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize("interleaved", [False, True], ids=["halves", "pairs"])
    @pytest.mark.parametrize(
        ("heads", "key_heads", "size", "half"), [(3, 1, 16, 8), (5, 2, 12, 3), (1, 1, 2, 1)], ids=str
    )
    def test_cache_and_positions(
        self,
        implementation: str,
        heads: int,
        key_heads: int,
        size: int,
        half: int,
        interleaved: bool,
        dtype: torch.dtype,
    ) -> None:
        wide = torch.full((4, (heads + key_heads) * size + 7), float("nan"), dtype=dtype)
        query = wide[:, 3 : 3 + heads * size].unflatten(-1, (heads, size))
        key = wide[:, 3 + heads * size : -4].unflatten(-1, (key_heads, size))
        query.copy_(rows(4, heads, size))
        key.copy_(rows(4, key_heads, size, seed=1))
        table, positions = cache(50, half), torch.tensor([7, 0, 49, 7])
        cos, sin = table[:, :half], table[:, half:]
        expected = [oracle(part, cos[positions], sin[positions], interleaved) for part in (query, key)]
        run("rope", implementation, query, key, cos, sin, positions, interleaved, [], False)
        for actual, right in zip((query, key), expected):
            assert_close(actual, right, "reduction")
        assert wide[:, :3].isnan().all()
        assert wide[:, -4:].isnan().all()

    def test_one_tensor_has_both_halves_written(self, implementation: str) -> None:
        query, table = rows(3, 2, 8), cache(3, 4)
        expected = oracle(query, table[:, :4], table[:, 4:], False)
        run("rope", implementation, query, None, table[:, :4], table[:, 4:], None, False, [], False)
        assert_close(query, expected, "reduction")

    @pytest.mark.parametrize("interleaved", [False, True], ids=["contiguous", "interleaved"])
    @pytest.mark.parametrize("section", [[16, 24, 24], [4, 2, 2]], ids=str)
    def test_three_positions_of_any_stride(self, implementation: str, section: list[int], interleaved: bool) -> None:
        half = sum(section)
        query, key, table = rows(5, 2, 2 * half), rows(5, 1, 2 * half, seed=1), cache(30, half)
        positions = torch.randint(30, (5, 3), generator=torch.Generator().manual_seed(2)).t()
        assert not positions.is_contiguous()
        cos, sin = (
            torch.stack([part[positions[axis_of(pair, section, interleaved)], pair] for pair in range(half)], -1)
            for part in (table[:, :half], table[:, half:])
        )
        expected = oracle(query, cos, sin, False), oracle(key, cos, sin, False)
        run(
            "rope", implementation, query, key, table[:, :half], table[:, half:], positions, False, section, interleaved
        )
        for actual, right in zip((query, key), expected):
            assert_close(actual, right, "reduction")

    def test_tables_in_three_dimensions(self, implementation: str) -> None:
        query, cos, sin = rows(2, 1, 8), rows(3, 2, 4, seed=1), rows(3, 2, 4, seed=2)
        pick = [0, 1, 1, 2]
        chosen = [torch.stack([part[axis, :, pair] for pair, axis in enumerate(pick)], -1) for part in (cos, sin)]
        expected = oracle(query, *chosen, False)
        run("rope", implementation, query, None, cos, sin, None, False, [1, 2, 1], False)
        assert_close(query, expected, "reduction")

    def test_no_tokens(self, implementation: str) -> None:
        table = cache(3, 4)
        run("rope", implementation, rows(0, 2, 8), None, table[:0, :4], table[:0, 4:], None, False, [], False)

    @settings(max_examples=6, deadline=None)
    @given(tokens=st.integers(1, 60), heads=st.integers(1, 9), half=st.integers(1, 20), interleaved=st.booleans())
    def test_random_shapes(self, implementation: str, tokens: int, heads: int, half: int, interleaved: bool) -> None:
        query, table = rows(tokens, heads, 2 * half + 1), cache(tokens, half)
        expected = oracle(query, table[:, :half], table[:, half:], interleaved)
        run("rope", implementation, query, None, table[:, :half], table[:, half:], None, interleaved, [], False)
        assert_close(query, expected, "reduction")


@pytest.mark.parametrize("target", [ASCEND_910B1, cuda_target(132)], ids=lambda target: target.name)
@pytest.mark.parametrize("half", [32, 64, 96, 128, 256, 512])
def test_tiles_fit_at_every_rotary_size(target, half: int) -> None:
    for interleaved, tokens in itertools.product((False, True), (1, 70000)):
        plan = plan_rope(target, tokens, 64, 64, half, 2, interleaved)
        assert plan.programs <= MAX_PROGRAMS
        assert plan.half >= half
        # Both elements of a pair read and written in bf16, twice buffered, and in fp32.
        assert plan.query_heads * plan.half * (16 + 24) <= target.unified_buffer or target.kind == "cuda"


def test_operator_is_well_formed() -> None:
    table = cache(3, 4)
    opcheck("rope", rows(3, 2, 8), rows(3, 1, 8), table[:, :4], table[:, 4:], torch.arange(3), False, [], False)
    opcheck("rope", rows(3, 2, 8), None, table[:, :4], table[:, 4:], None, True, [], False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cos": torch.ones(12, 4), "sin": torch.ones(12, 4)}, "12 rows of cosines and 14 tokens"),
        ({"positions": torch.arange(13)}, "13 positions and 14 tokens"),
        ({"sin": torch.ones(14, 3)}, r"cos has shape \(14, 4\) and sin \(14, 3\)"),
        ({"query": torch.ones(14, 1, 6)}, "heads of 6 elements, tables for 8"),
        ({"query": torch.ones(14, 8, 2).mT}, "neighbours"),
        ({"section": [1, 2, 1]}, r"section \[1, 2, 1\] of 4 pairs"),
        ({"key": torch.ones(14, 1, 8, dtype=torch.float16)}, "torch.float16 in key"),
    ],
    ids=["rows", "positions", "tables", "size", "stride", "section", "dtype"],
)
def test_what_does_not_belong_together_is_refused(change: dict, message: str) -> None:
    arguments = {"query": torch.ones(14, 2, 8), "key": None, "cos": torch.ones(14, 4), "sin": torch.ones(14, 4)}
    with pytest.raises(ValueError, match=message):
        ascend_kernels.rope(**(arguments | change))
