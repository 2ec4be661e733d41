"""paged_decode_attention: float64 attention over the keys that a request sees as the oracle; other pages hold NaN."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.ops.attention.paged_decode_attention.plan import plan_splits
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import IMPLEMENTATIONS, assert_close, guarded, opcheck, run

from .oracle import attention, pages_of


class Batch:
    """Requests of given lengths, their pages one after another, backwards."""

    def __init__(
        self, lengths: list[int], heads: int, kv_heads: int, key_size: int, value_size: int, page: int,
        dtype: torch.dtype = torch.float32, int8: bool = False,
    ) -> None:  # fmt: skip
        generator = torch.Generator().manual_seed(sum(lengths) + key_size)

        def draw(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=generator)

        self.query = guarded(draw(len(lengths), heads, key_size).to(dtype))
        self.lengths, self.group = torch.tensor(lengths, dtype=torch.int32), heads // kv_heads
        total = sum(-(-length // page) for length in lengths) + 1
        self.table = torch.zeros(len(lengths), max(1, -(-max(lengths, default=0) // page)), dtype=torch.int32)
        self.scales = (
            (draw(kv_heads, key_size).abs() / 60 + 0.001, draw(kv_heads, value_size).abs() / 60)
            if int8
            else (None,) * 2
        )
        caches, self.rows, used = [], [], 1
        for n, length in enumerate(lengths):
            pages = list(range(used, used + -(-length // page)))[::-1]
            used += len(pages)
            self.table[n, : len(pages)] = torch.tensor(pages, dtype=torch.int32)
            rows = [draw(length, kv_heads, size) for size in (key_size, value_size)]
            rows = [(r * 40).clamp(-127, 127).round().to(torch.int8) if int8 else r.to(dtype) for r in rows]
            self.rows.append([r if s is None else r.double() * s.double() for r, s in zip(rows, self.scales)])
            caches.append([pages_of(r, page, pages, total) for r in rows])
        self.caches = [c.clone() for c in caches[0]]
        for n, pair in enumerate(caches):
            numbers = self.table[n, : -(-lengths[n] // page)].long()
            for cache, part in zip(self.caches, pair):
                cache[numbers] = part[numbers]

    def expected(
        self, window: int = 0, soft_cap: float = 0.0, sinks: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        outputs, lses = [], []
        for n, (keys, values) in enumerate(self.rows):
            first = max(0, len(keys) - window) if window else 0
            for head in range(self.query.shape[1]):
                kv = head // self.group
                result = attention(
                    self.query[n, head], keys[first:, kv], values[first:, kv], 0.3, soft_cap,
                    None if sinks is None else float(sinks[head]),
                )  # fmt: skip
                outputs.append(result[0])
                lses.append(result[1])
        shape = self.query.shape[:2]
        return torch.stack(outputs).unflatten(0, shape), torch.tensor(lses, dtype=torch.float64).unflatten(0, shape)

    def run(
        self, implementation: str, window: int = 0, soft_cap: float = 0.0, sinks: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return run(
            "paged_decode_attention", implementation, self.query, *self.caches, self.table, self.lengths, *self.scales,
            sinks, 0.3, window, soft_cap,
        )  # fmt: skip

    def check(self, implementation: str, **options: object) -> None:
        for actual, right in zip(self.run(implementation, **options), self.expected(**options)):  # type: ignore[arg-type]
            assert_close(actual, right, "matmul")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestPagedDecodeAttention:
    @pytest.mark.parametrize(
        ("heads", "kv_heads", "key_size", "value_size", "page"),
        [(4, 2, 16, 16, 16), (3, 1, 80, 33, 7), (20, 1, 36, 32, 24), (2, 2, 257, 1, 3)],
        ids=str,
    )
    def test_heads_sizes_and_pages(
        self, implementation: str, heads: int, kv_heads: int, key_size: int, value_size: int, page: int
    ) -> None:
        Batch([1, page, 2 * page + 1, 0], heads, kv_heads, key_size, value_size, page).check(implementation)

    def test_fp16(self, implementation: str) -> None:
        Batch([5, 40], 4, 2, 64, 64, 16, torch.float16).check(implementation)

    @pytest.mark.parametrize("window", [1, 5, 100])
    def test_window(self, implementation: str, window: int) -> None:
        Batch([1, 5, 6, 37], 2, 1, 16, 16, 16).check(implementation, window=window)

    def test_sinks_and_cap(self, implementation: str) -> None:
        sinks = torch.tensor([0.5, -100.0, 3.0, 0.0])
        Batch([0, 4, 33], 4, 2, 16, 16, 16).check(implementation, soft_cap=1.5, sinks=sinks)

    def test_int8(self, implementation: str) -> None:
        Batch([3, 20], 4, 2, 24, 24, 8, int8=True).check(implementation)

    def test_a_long_context_is_split_and_merged(self, implementation: str) -> None:
        # One request, so that cores would be idle; with the window most splits see nothing.
        batch = Batch([600], 2, 1, 16, 16, 16, torch.float16)
        sinks = torch.tensor([1.0, -1.0], dtype=torch.float16)
        batch.check(implementation, sinks=sinks)
        batch.check(implementation, window=30)

    @settings(max_examples=2, deadline=None)
    @given(
        lengths=st.lists(st.integers(0, 50), min_size=1, max_size=4),
        group=st.integers(1, 3),
        size=st.integers(1, 40),
        page=st.integers(1, 20),
    )
    def test_random_batches(self, implementation: str, lengths: list[int], group: int, size: int, page: int) -> None:
        Batch(lengths, 2 * group, 2, size, size, page).check(implementation)


def test_latent_attention_reads_values_out_of_the_keys() -> None:
    cache = torch.randn(4, 8, 1, 20)
    query, table, lengths = torch.randn(1, 3, 20), torch.tensor([[2, 0]]), torch.tensor([11])
    output, _ = ascend_kernels.paged_decode_attention(query, cache, cache[..., :12], table, lengths, scale=0.2)
    keys = cache[[2, 0]].flatten(0, 1)[:11, 0]
    right = torch.stack([attention(query[0, head], keys, keys[:, :12], 0.2)[0] for head in range(3)])
    assert_close(output[0], right, "matmul")


def test_no_requests() -> None:
    output, lse = ascend_kernels.paged_decode_attention(
        torch.empty(0, 2, 8), *[torch.empty(3, 4, 1, 8)] * 2, torch.empty(0, 1).int(), torch.empty(0).int()
    )
    assert (output.shape, lse.shape) == ((0, 2, 8), (0, 2))


def test_splits_keep_cores_busy_within_the_grid() -> None:
    assert plan_splits(cuda_target(132), 70_000, 1, 1, 16, 100).programs == 65535
    plans = [plan_splits(ASCEND_910B1, rows, 8, 4, 16, 64) for rows in (1, 3, 32)]
    assert [(plan.splits, plan.programs) for plan in plans] == [(3, 24), (1, 24), (1, 24)]
    # 25 programs on 24 cores would take two rounds.
    assert plan_splits(ASCEND_910B1, 5, 1, 4, 16, 1000).tasks == 20
    # Four tiles at least, and heads in pieces.
    assert [plan_splits(ASCEND_910B1, 1, 1, 40, 16, tiles).splits for tiles in (1, 9, 1000)] == [1, 3, 8]


def test_operator_is_well_formed() -> None:
    opcheck(
        "paged_decode_attention", torch.randn(1, 2, 8), *[torch.randn(3, 4, 1, 8)] * 2, torch.tensor([[1, 2]]),
        torch.tensor([6]), None, None, None, 0.3, 0, 0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": torch.ones(2, 3, 8)}, "heads a multiple of kv_heads"),
        ({"query": torch.ones(2, 2, 4)}, "queries as long as keys"),
        ({"query": torch.ones(2, 8, 2).mT}, "must be neighbours"),
        ({"query": torch.ones(2, 2, 8).half()}, "keys torch.float32"),
        ({"key_cache": torch.ones(3, 4, 2, 8).to(torch.int8)}, "values torch.float32"),
        ({"key_scale": torch.ones(2, 8)}, "key_scale given"),
        ({"sinks": torch.ones(3)}, "one per head"),
        ({"window": -1}, "window -1"),
        ({"seq_lens": torch.ones(3).int()}, "seq_lens"),
    ],
    ids=["heads", "sizes", "strides", "dtypes", "int8", "scales", "sinks", "window", "lengths"],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {
        "query": torch.ones(2, 2, 8),
        "key_cache": torch.ones(3, 4, 2, 8),
        "value_cache": torch.ones(3, 4, 2, 8),
        "block_table": torch.ones(2, 2).int(),
        "seq_lens": torch.ones(2).int(),
    }
    with pytest.raises(ValueError, match=message):
        ascend_kernels.paged_decode_attention(**(arguments | changes))  # type: ignore[arg-type]
