"""split_qkv_norm_rope: torch's norm and multiplication of complex numbers in float64 as the oracle."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.norm.split_qkv_norm_rope.plan import plan_split
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def table(count: int, half: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines, views of one cache."""
    angles = torch.outer(torch.arange(count).double(), 10000.0 ** (-torch.arange(half).double() / half))
    cache = torch.cat((angles.cos(), angles.sin()), -1).float()
    return cache[:, :half], cache[:, half:]


def turned(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = cos.shape[-1]
    result = heads.clone()
    numbers = torch.complex(heads[..., :half].contiguous(), heads[..., half : 2 * half].contiguous())
    numbers = numbers * torch.complex(cos.double(), sin.double())[:, None]
    result[..., :half], result[..., half : 2 * half] = numbers.real, numbers.imag
    return result


def oracle(
    qkv: torch.Tensor,
    heads: int,
    key_heads: int,
    weights: tuple[torch.Tensor, torch.Tensor],
    cos: torch.Tensor,
    sin: torch.Tensor,
    eps: float,
    *,
    gemma: bool = False,
    gated: bool = False,
    biases: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> list[torch.Tensor]:
    """Query, key, value and gate with heads normalised; ``cos`` and ``sin`` are the tokens' own."""
    size = qkv.shape[1] // (heads * (1 + gated) + 2 * key_heads)
    pieces = qkv.double().unflatten(-1, (-1, size))
    steps = 1 + gated
    query, gate = pieces[:, : heads * steps : steps], pieces[:, 1 : heads * steps : steps]
    key = pieces[:, heads * steps : heads * steps + key_heads]
    results = []
    for index, part in enumerate((query, key)):
        normed = torch.nn.functional.rms_norm(part, (size,), weights[index].double() + gemma, eps)
        normed = normed if biases is None else normed + biases[index].double()
        results.append(turned(normed, cos, sin))
    return [*results, pieces[:, -key_heads:], gate if gated else torch.empty(0)]


def check(actual: tuple[torch.Tensor, ...], expected: list[torch.Tensor]) -> None:
    for ours, right in zip(actual, expected, strict=True):
        assert ours.is_contiguous()
        assert_close(ours, right, "reduction")
    assert_close(actual[2], expected[2], "exact")
    assert_close(actual[3], expected[3], "exact")


def call(implementation: str, qkv: torch.Tensor, heads: int, key_heads: int, weights: Any, cos: Any, sin: Any,
         positions: Any = None, **options: Any) -> tuple[torch.Tensor, ...]:  # fmt: skip
    return run(
        "split_qkv_norm_rope", implementation, qkv, heads, key_heads, *weights, *options.get("biases", (None, None)),
        options.get("means"), cos, sin, positions, 1e-5, options.get("gemma", False), options.get("gated", False),
        options.get("section", []), options.get("interleaved", False),
    )  # fmt: skip


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestSplitQkvNormRope:
    def test_literal_values(self, implementation: str) -> None:
        # The mean square of (3, 4) is 12.5; a quarter turn makes (a, b) into (-b, a).
        qkv = torch.tensor([[3.0, 4.0, 4.0, 3.0, 7.0, 8.0]])
        ones, zero, one = torch.ones(2), torch.zeros(1, 1), torch.ones(1, 1)
        q, k, v, _ = run(
            "split_qkv_norm_rope", implementation, qkv, 1, 1, ones, ones, None, None, None, zero, one, None, 0.0,
            False, False, [], False,
        )  # fmt: skip
        root = 12.5**0.5
        assert q.flatten().tolist() == pytest.approx([-4 / root, 3 / root])
        assert k.flatten().tolist() == pytest.approx([-3 / root, 4 / root])
        assert v.flatten().tolist() == [7.0, 8.0]

    @pytest.mark.parametrize("dtype", FLOATS, ids=short_name)
    @pytest.mark.parametrize(
        ("heads", "key_heads", "size", "half"), [(3, 1, 16, 8), (5, 2, 12, 3), (1, 1, 2, 1)], ids=str
    )
    @pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
    def test_heads_of_any_size_and_rows_of_any_stride(
        self, implementation: str, heads: int, key_heads: int, size: int, half: int, dtype: torch.dtype, gated: bool
    ) -> None:
        qkv = guarded(rows(4, (heads * (1 + gated) + 2 * key_heads) * size, dtype=dtype))
        weights = rows(size, dtype=dtype, seed=1), rows(size, dtype=dtype, seed=2)
        (cos, sin), positions = table(50, half), torch.tensor([7, 0, 49, 7])
        actual = call(implementation, qkv, heads, key_heads, weights, cos, sin, positions, gated=gated)
        check(actual, oracle(qkv, heads, key_heads, weights, cos[positions], sin[positions], 1e-5, gated=gated))

    def test_gemma_and_bias(self, implementation: str) -> None:
        qkv, weights = rows(3, 5 * 24), (rows(24, seed=1), rows(24, seed=2))
        biases = rows(24, seed=3), rows(24, seed=4)
        cos, sin = table(3, 8)
        actual = call(implementation, qkv, 3, 1, weights, cos, sin, gemma=True, biases=biases)
        check(actual, oracle(qkv, 3, 1, weights, cos, sin, 1e-5, gemma=True, biases=biases))

    @pytest.mark.parametrize("interleaved", [False, True], ids=["contiguous", "interleaved"])
    def test_three_positions_of_any_stride(self, implementation: str, interleaved: bool) -> None:
        # Pairs 0 to 7 turn by these axes, written out: sections of 4, 2 and 2.
        axes = [0, 1, 2, 0, 1, 2, 0, 0] if interleaved else [0, 0, 0, 0, 1, 1, 2, 2]
        qkv, weights = rows(5, 4 * 16), (rows(16, seed=1), rows(16, seed=2))
        cos, sin = table(30, 8)
        positions = torch.randint(30, (5, 3), generator=torch.Generator().manual_seed(2)).t()
        chosen = [
            torch.stack([part[positions[axis], pair] for pair, axis in enumerate(axes)], -1) for part in (cos, sin)
        ]
        actual = call(
            implementation, qkv, 2, 1, weights, cos, sin, positions, section=[4, 2, 2], interleaved=interleaved
        )
        check(actual, oracle(qkv, 2, 1, weights, *chosen, 1e-5))

    @pytest.mark.parametrize("ranks", [1, 2])
    def test_whole_rows_spread_over_ranks(self, implementation: str, ranks: int) -> None:
        heads, key_heads, size, half = 4, 2, 12, 4
        query, key, value = rows(3, heads * size), rows(3, key_heads * size, seed=1), rows(3, key_heads * size, seed=2)
        weights = rows(heads * size, seed=3), rows(key_heads * size, seed=4)
        cos, sin = table(3, half)
        shards = [torch.cat(parts, -1) for parts in zip(*(part.chunk(ranks, -1) for part in (query, key, value)))]
        columns = heads * size // ranks, key_heads * size // ranks
        means = sum(run("qk_square_means", implementation, guarded(shard), *columns, ranks) for shard in shards)
        results = [
            call(implementation, shard, heads // ranks, key_heads // ranks, shares, cos, sin, means=means)
            for shard, *shares in zip(shards, *(weight.chunk(ranks) for weight in weights))
        ]
        for index, (part, weight) in enumerate(zip((query, key), weights)):
            normed = torch.nn.functional.rms_norm(part.double(), part.shape[1:], weight.double(), 1e-5)
            right = turned(normed.unflatten(-1, (-1, size)), cos, sin)
            assert_close(torch.cat([result[index] for result in results], 1), right, "reduction")

    def test_no_tokens(self, implementation: str) -> None:
        cos, sin = table(3, 4)
        results = call(implementation, rows(0, 32), 2, 1, (torch.ones(8), torch.ones(8)), cos[:0], sin[:0])
        assert [result.shape for result in results] == [(0, 2, 8), (0, 1, 8), (0, 1, 8), (0,)]
        assert run("qk_square_means", implementation, rows(0, 32), 16, 8, 2).shape == (0, 2)

    @settings(max_examples=5, deadline=None)
    @given(tokens=st.integers(1, 55), heads=st.integers(1, 9), key_heads=st.integers(1, 3), half=st.integers(1, 20),
           rest=st.integers(0, 9))  # fmt: skip
    def test_random_shapes(
        self, implementation: str, tokens: int, heads: int, key_heads: int, half: int, rest: int
    ) -> None:
        size = 2 * half + rest
        qkv, weights = rows(tokens, (heads + 2 * key_heads) * size), (rows(size, seed=1), rows(size, seed=2))
        cos, sin = table(tokens, half)
        actual = call(implementation, qkv, heads, key_heads, weights, cos, sin)
        check(actual, oracle(qkv, heads, key_heads, weights, cos, sin, 1e-5))


def test_more_heads_than_a_tile_holds() -> None:
    plan = plan_split(ASCEND_910B1, 2, 40, 1, 128, 64, 4)
    assert plan.query_heads < 40
    qkv, weights = rows(2, 42 * 128), (rows(128, seed=1), rows(128, seed=2))
    cos, sin = table(2, 64)
    check(call("ascend", qkv, 40, 1, weights, cos, sin), oracle(qkv, 40, 1, weights, cos, sin, 1e-5))


def test_more_tokens_than_a_grid_has_programs() -> None:
    tokens = MAX_PROGRAMS + 2
    assert plan_split(cuda_target(132), tokens, 1, 1, 2, 1, 4).programs == MAX_PROGRAMS
    qkv, weights = rows(tokens, 6), (rows(2, seed=1), rows(2, seed=2))
    cos, sin = table(tokens, 1)
    [q, k, v, _] = call("naive", qkv, 1, 1, weights, cos, sin)
    check((q, k, v, torch.empty(0)), oracle(qkv, 1, 1, weights, cos, sin, 1e-5))


@pytest.mark.parametrize("size", [64, 128, 192, 256, 512])
def test_tiles_fit_the_unified_buffer(size: int) -> None:
    for itemsize in (2, 4):
        plan = plan_split(ASCEND_910B1, 70000, 96, 8, size, size // 2, itemsize)
        # Read and written, twice buffered, and in fp32 with weight, bias and square.
        assert plan.query_heads * (2 * plan.half + plan.rest) * (4 * itemsize + 28) <= ASCEND_910B1.unified_buffer
        assert plan.programs == ASCEND_910B1.vector_cores


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
def test_operators_are_well_formed(gated: bool) -> None:
    cos, sin = table(3, 4)
    opcheck(
        "split_qkv_norm_rope", rows(3, (4 + 2 * gated) * 8), 2, 1, torch.ones(8), torch.ones(8), None, None, None, cos,
        sin, torch.arange(3), 1e-6, False, gated, [], False,
    )  # fmt: skip
    opcheck("qk_square_means", rows(3, 32), 16, 8, 2)


def test_public_function_takes_columns_of_any_stride_and_gives_gates_or_none() -> None:
    qkv, weights = rows(32, 3).t(), (torch.ones(8), torch.ones(8))
    assert not qkv.is_contiguous()
    cos, sin = table(3, 4)
    q, k, v, gate = ascend_kernels.split_qkv_norm_rope(qkv, 2, 1, *weights, cos, sin, eps=1e-5)
    assert gate is None
    check((q, k, v, torch.empty(0)), oracle(qkv, 2, 1, weights, cos, sin, 1e-5))
    *_, gate = ascend_kernels.split_qkv_norm_rope(qkv, 1, 1, *weights, cos, sin, gated=True)
    assert gate is not None
    assert_close(gate[:, 0], qkv[:, 8:16], "exact")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qkv": torch.ones(14, 33)}, "multiple of 4 elements"),
        ({"key_heads": 0}, "at least one head"),
        ({"cos": torch.ones(12, 4), "sin": torch.ones(12, 4)}, "12 rows of cosines and 14 tokens"),
        ({"positions": torch.arange(13)}, "13 positions and 14 tokens"),
        ({"sin": torch.ones(14, 3)}, r"cos has shape \(14, 4\) and sin \(14, 3\)"),
        ({"cos": torch.ones(14, 5), "sin": torch.ones(14, 5)}, "half of a head of 8"),
        ({"section": [1, 2, 1]}, r"section \[1, 2, 1\] of 4 pairs"),
        ({"q_weight": torch.ones(7)}, r"q_weight has shape \(7,\)"),
        ({"k_bias": torch.ones(16)}, r"k_bias has shape \(16,\)"),
        ({"means": torch.ones(14, 2)}, "whole rows are normalised"),
        ({"means": torch.ones(14, 3), "q_weight": torch.ones(16)}, r"means are torch.float32 of shape \(14, 3\)"),
    ],
    ids=["columns", "heads", "rows", "positions", "tables", "half", "section", "weight", "bias", "whole", "means"],
)
def test_what_does_not_belong_together_is_refused(change: dict[str, Any], message: str) -> None:
    arguments = {
        "qkv": torch.ones(14, 32), "heads": 2, "key_heads": 1, "q_weight": torch.ones(8), "k_weight": torch.ones(8),
        "cos": torch.ones(14, 4), "sin": torch.ones(14, 4),
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        ascend_kernels.split_qkv_norm_rope(**(arguments | change))


def test_rows_too_short_for_query_and_key_are_refused() -> None:
    with pytest.raises(ValueError, match=r"qkv has shape \(2, 8\); 6 columns of query and 4 of key"):
        ascend_kernels.qk_square_means(torch.ones(2, 8), 6, 4, 1)
