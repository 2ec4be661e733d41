"""varlen_attention: float64 attention of each query over the keys that it sees as the oracle."""

from __future__ import annotations

from itertools import accumulate

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.ops.attention.tiles.plan import plan_tiles
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import IMPLEMENTATIONS, assert_close, guarded, opcheck, run

from .oracle import attention, pages_of


def starts_of(lengths: list[int]) -> torch.Tensor:
    return torch.tensor([0, *accumulate(lengths)], dtype=torch.int32)


class Batch:
    """Packed sequences of (queries, keys), heads with a size of keys and one of values."""

    def __init__(
        self, sequences: list[tuple[int, int]], heads: int, kv_heads: int, key_size: int, value_size: int,
        dtype: torch.dtype = torch.float32,
    ) -> None:  # fmt: skip
        generator = torch.Generator().manual_seed(len(sequences) + key_size)
        queries, keys = ([pair[i] for pair in sequences] for i in (0, 1))
        self.queries, self.keys, self.group = queries, keys, heads // kv_heads

        def draw(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=generator).to(dtype)

        self.query = guarded(draw(sum(queries), heads, key_size))
        self.key, self.value = draw(sum(keys), kv_heads, key_size), draw(sum(keys), kv_heads, value_size)

    def expected(
        self, causal: bool = True, window: int = 0, soft_cap: float = 0.0, sinks: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        outputs, lses, token, begin = [], [], 0, 0
        for queries, length in zip(self.queries, self.keys):
            for i in range(queries):
                own = length - queries + i
                last = max(own + 1, 0) if causal else length
                first = max(0, own - window + 1) if window else 0
                for head in range(self.query.shape[1]):
                    kv, seen = head // self.group, slice(begin + first, begin + last)
                    output, lse = attention(
                        self.query[token, head], self.key[seen, kv], self.value[seen, kv], 0.3, soft_cap,
                        None if sinks is None else float(sinks[head]),
                    )  # fmt: skip
                    outputs.append(output)
                    lses.append(lse)
                token += 1
            begin += length
        shape = self.query.shape[:2]
        return torch.stack(outputs).unflatten(0, shape), torch.tensor(lses, dtype=torch.float64).unflatten(0, shape)

    def paged(
        self, page: int, int8_scales: tuple[torch.Tensor, torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, ...]:
        """Caches of keys and values, block table and lengths; sequence n's pages are n, n + N, n + 2 N ..."""
        count = len(self.keys)
        most = max(-(-length // page) for length in self.keys)
        table = torch.arange(count)[:, None] + count * torch.arange(max(most, 1))
        caches = []
        for rows in (self.key, self.value):
            parts = [
                pages_of(part, page, table[n, : -(-len(part) // page)].tolist(), count * max(most, 1))
                for n, part in enumerate(rows.split(self.keys))
            ]
            caches.append(torch.cat([parts[i % count][i : i + 1] for i in range(count * max(most, 1))]))
        return *caches, table, torch.tensor(self.keys)

    def check(self, implementation: str, page: int = 0, **options: object) -> None:
        key, value, table, lengths = self.paged(page) if page else (self.key, self.value, None, starts_of(self.keys))
        results = run(
            "varlen_attention", implementation, self.query, key, value, starts_of(self.queries), lengths, table, None,
            None, options.get("sinks"), 0.3, options.get("causal", True), options.get("window", 0),
            options.get("soft_cap", 0.0),
        )  # fmt: skip
        for actual, right in zip(results, self.expected(**options)):  # type: ignore[arg-type]
            assert_close(actual, right, "matmul")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestVarlenAttention:
    @pytest.mark.parametrize(
        ("heads", "kv_heads", "key_size", "value_size"), [(2, 1, 16, 16), (3, 3, 80, 33), (2, 2, 1, 130)], ids=str
    )
    def test_heads_and_sizes(
        self, implementation: str, heads: int, kv_heads: int, key_size: int, value_size: int
    ) -> None:
        # One with a prefix, an empty one, and in the first case one longer than a chunk.
        last = 70 if key_size == 16 else 6
        Batch([(3, 9), (0, 0), (last, last)], heads, kv_heads, key_size, value_size).check(implementation)

    def test_fp16_in_pages_behind_a_prefix(self, implementation: str) -> None:
        Batch([(2, 40), (1, 1), (20, 37)], 2, 1, 64, 64, torch.float16).check(implementation, page=16)

    @pytest.mark.parametrize("page", [0, 5])
    def test_window_sinks_and_cap(self, implementation: str, page: int) -> None:
        sinks = torch.tensor([2.0, -1.0])
        batch = Batch([(19, 19), (3, 30)], 2, 1, 16, 16)
        batch.check(implementation, page=page, window=4, sinks=sinks, soft_cap=1.5)

    def test_an_encoder_sees_all(self, implementation: str) -> None:
        Batch([(7, 7), (3, 12)], 2, 2, 16, 16).check(implementation, causal=False)

    def test_a_query_before_all_keys_sees_nothing(self, implementation: str) -> None:
        Batch([(5, 2)], 1, 1, 16, 16).check(implementation)

    def test_int8(self, implementation: str) -> None:
        batch = Batch([(5, 21)], 2, 1, 24, 24)
        scales = torch.linspace(0.01, 0.03, 24)[None], torch.linspace(0.02, 0.04, 24)[None]
        batch.key, batch.value = ((x * 40).clamp(-127, 127).round().to(torch.int8) for x in (batch.key, batch.value))
        caches = batch.paged(8)
        batch.key, batch.value = (x.double() * s.double() for x, s in zip((batch.key, batch.value), scales))
        results = run(
            "varlen_attention", implementation, batch.query, *caches[:2], starts_of([5]), caches[3], caches[2],
            *scales, None, 0.3, True, 0, 0.0,
        )  # fmt: skip
        for actual, right in zip(results, batch.expected()):
            assert_close(actual, right, "matmul")

    @settings(max_examples=2, deadline=None)
    @given(
        sequences=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=3),
        size=st.integers(1, 40),
        page=st.integers(0, 20),
    )
    def test_random_batches(self, implementation: str, sequences: list[tuple[int, int]], size: int, page: int) -> None:
        batch = Batch([(new, new + old) for new, old in [*sequences, (1, 0)]], 2, 1, size, size)
        batch.check(implementation, page=page)


def test_keys_default_to_as_many_as_queries() -> None:
    batch = Batch([(4, 4), (3, 3)], 2, 1, 16, 16)
    output, _ = ascend_kernels.varlen_attention(batch.query, batch.key, batch.value, starts_of([4, 3]), scale=0.3)
    assert_close(output, batch.expected()[0], "matmul")


def test_tiles_fit() -> None:
    for size in (16, 80, 128, 192, 256, 512):
        plan = plan_tiles(ASCEND_910B1, 4096, size, size, 2, 128, 0, False)
        assert plan.rows * plan.width * 24 <= ASCEND_910B1.unified_buffer
        assert 128 % plan.span == 0
        cuda = plan_tiles(cuda_target(132), 4096, size, size, 2, 16, 0, False)
        # Shared memory of an H200, for keys, values and queries.
        assert ((cuda.depth + cuda.width) * cuda.keys * cuda.stages + cuda.rows * cuda.depth) * 2 <= 227 * 1024
    assert [plan_tiles(ASCEND_910B1, 64, 128, 128, 2, page, 0, False).span for page in (16, 48, 128, 160)] == [
        16,
        48,
        128,
        80,
    ]
    with pytest.raises(ValueError, match="values of 513 elements"):
        plan_tiles(ASCEND_910B1, 64, 128, 513, 2, 0, 0, False)


def test_operator_is_well_formed() -> None:
    starts = starts_of([3, 2])
    opcheck(
        "varlen_attention", torch.randn(5, 2, 8), *[torch.randn(5, 1, 8)] * 2, starts, starts, None, None, None, None,
        0.3, True, 0, 0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": torch.ones(4, 3, 8)}, "heads a multiple of kv_heads"),
        ({"block_table": torch.ones(1, 2).int()}, "twice .blocks, page"),
        ({"seq_lens": torch.ones(1).int()}, "block_table and seq_lens go together"),
        ({"cu_seqlens_k": torch.ones(3).int()}, "lengths of keys"),
        ({"window": 4, "causal": False}, "window 4 without causal"),
        ({"soft_cap": -1.0}, "soft_cap -1"),
    ],
    ids=["heads", "pages", "lengths", "starts", "window", "cap"],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {
        "query": torch.ones(4, 2, 8),
        "key": torch.ones(4, 2, 8),
        "value": torch.ones(4, 2, 8),
        "cu_seqlens": torch.tensor([0, 4]),
    }
    with pytest.raises(ValueError, match=message):
        ascend_kernels.varlen_attention(**(arguments | changes))  # type: ignore[arg-type]
