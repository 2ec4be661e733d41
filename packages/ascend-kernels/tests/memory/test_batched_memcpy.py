"""batched_memcpy, batched_copy: bytes compared with slices of a buffer, those around the copies too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.ops.memory.batched_memcpy.plan import plan_memcpy
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import IMPLEMENTATIONS, run


def copy_slices(
    implementation: str, slices: list[tuple[int, int, int]], length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The target after copies of (from, to, bytes) between two buffers, and what it must be."""
    source = torch.randint(1, 255, (length,), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    target = torch.zeros(length, dtype=torch.uint8)
    begins, ends, sizes = torch.tensor(slices).T
    run("batched_memcpy", implementation, begins + source.data_ptr(), ends + target.data_ptr(), sizes)
    right = torch.zeros_like(target)
    for begin, end, size in slices:
        right[end : end + size] = source[begin : begin + size]
    return target, right


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestBatchedMemcpy:
    def test_aligned_and_odd_runs(self, implementation: str) -> None:
        target, right = copy_slices(implementation, [(0, 8, 64), (65, 81, 7), (100, 100, 0), (128, 203, 1)], 256)
        assert torch.equal(target, right)

    def test_runs_longer_than_all_shares_of_a_tile(self, implementation: str) -> None:
        plan = plan_memcpy(ASCEND_910B1 if implementation == "ascend" else cuda_target(132), 40)
        size = (plan.shares * plan.block + 3) * 8
        slices = [(0, 16, size)] + [(size + i, size + 16 + i, 1) for i in range(39)]
        target, right = copy_slices(implementation, slices, size + 64)
        assert torch.equal(target, right)

    @settings(max_examples=3, deadline=None)
    @given(data=st.data())
    def test_random_runs(self, implementation: str, data: st.DataObject) -> None:
        sizes = data.draw(st.lists(st.integers(0, 90), min_size=1, max_size=5))
        gaps = data.draw(st.lists(st.integers(0, 9), min_size=len(sizes), max_size=len(sizes)))
        ends = [sum(sizes[:i]) + sum(gaps[: i + 1]) for i in range(len(sizes))]
        begins = data.draw(st.lists(st.integers(0, 400), min_size=len(sizes), max_size=len(sizes)))
        target, right = copy_slices(implementation, list(zip(begins, ends, sizes)), 600)
        assert torch.equal(target, right)


def test_tensors_of_any_dtypes() -> None:
    sources = [torch.randn(3, 5), torch.arange(7), torch.empty(0)]
    targets = [torch.zeros(15), torch.zeros(7, dtype=torch.int64), torch.empty(0)]
    ascend_kernels.batched_copy(sources, targets)
    assert all(torch.equal(source.flatten(), target) for source, target in zip(sources, targets))
    ascend_kernels.batched_copy([], [])


def test_programs_stay_within_the_grid_and_tiles_on_chip() -> None:
    assert plan_memcpy(cuda_target(132), 70_000).programs == 65535
    assert [plan_memcpy(ASCEND_910B1, copies).shares for copies in (1, 3, 48, 500)] == [48, 16, 1, 1]
    assert 2 * 8 * plan_memcpy(ASCEND_910B1, 1).block <= ASCEND_910B1.unified_buffer


def test_a_compiled_graph_keeps_the_copy() -> None:
    source, target = torch.arange(8.0), torch.zeros(8)
    addresses = [torch.tensor([value]) for value in (source.data_ptr(), target.data_ptr(), source.nbytes)]
    torch.compile(ascend_kernels.batched_memcpy, backend="aot_eager", fullgraph=True)(*addresses)
    assert torch.equal(source, target)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ascend_kernels.batched_memcpy(*[torch.ones(1)] * 3), "batched_memcpy: sources torch.float32"),
        (lambda: ascend_kernels.batched_memcpy(*[torch.ones(n).long() for n in (1, 1, 2)]), "batched_memcpy: sizes"),
        (lambda: ascend_kernels.batched_copy([torch.ones(1)], []), "1 sources and 0 targets"),
        (lambda: ascend_kernels.batched_copy([torch.ones(1)], [torch.ones(2)]), "batched_copy: pair 0"),
        (lambda: ascend_kernels.batched_copy([torch.ones(2, 2).T], [torch.ones(2, 2)]), "batched_copy: pair 0"),
        (lambda: ascend_kernels.batched_copy([torch.ones(1)], [torch.ones(1, device="meta")]), "is on cpu and meta"),
    ],
    ids=["dtype", "shape", "counts", "sizes", "strided", "devices"],
)
def test_what_does_not_go_is_refused(call: Callable[[], None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
