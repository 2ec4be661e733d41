"""kv_block_copy, kv_block_zero: torch's own indexing as the oracle; what lies between blocks stays as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import ascend_kernels
from ascend_kernels.calls import short_name
from ascend_kernels.ops.memory.segments.plan import plan_segments
from ascend_kernels.target import ASCEND_910B1, cuda_target
from ascend_kernels.testing import IMPLEMENTATIONS, opcheck, run


def numbered(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return (torch.arange(count) % 120 + 1).view(shape).to(dtype)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestBlocks:
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8, torch.float32], ids=short_name)
    def test_blocks_of_all_layers(self, implementation: str, dtype: torch.dtype) -> None:
        # Keys and values in one tensor, an odd cache, and one whose blocks lie apart.
        together = numbered(2, 5, 4, 2, 8, dtype=dtype)
        odd = numbered(5, 3, 5, dtype=dtype)
        apart = numbered(5, 40, dtype=dtype)[:, :24]
        caches = [*together.unbind(0), odd, apart]
        expected = [cache.clone() for cache in caches]
        for cache in expected:
            cache[3], cache[1] = cache[0].clone(), cache[4].clone()
        behind = apart.as_strided((5, 16), (40, 1), 24).clone()
        run("kv_block_copy", implementation, caches, torch.tensor([[0, 3], [-1, 2], [4, 1], [2, -1]]))
        assert all(torch.equal(cache, right) for cache, right in zip(caches, expected))
        run("kv_block_zero", implementation, caches, torch.tensor([2, -1, 0], dtype=torch.int32))
        for cache in expected:
            cache[[0, 2]] = 0
        assert all(torch.equal(cache, right) for cache, right in zip(caches, expected))
        assert torch.equal(apart.as_strided((5, 16), (40, 1), 24), behind)

    def test_a_block_longer_than_a_tile(self, implementation: str) -> None:
        cache = numbered(3, 70_001, dtype=torch.int8)
        right = cache[2].clone()
        run("kv_block_copy", implementation, [cache], torch.tensor([[2, 0]]))
        assert torch.equal(cache[0], right)
        run("kv_block_zero", implementation, [cache], torch.tensor([2]))
        assert not cache[2].any()
        assert torch.equal(cache[0], right)


def test_every_piece_has_a_task_within_the_grid() -> None:
    assert plan_segments(cuda_target(132), 70_000, 100, 8).programs == 65535
    plan = plan_segments(ASCEND_910B1, 10, 100_000, 8)
    assert (plan.programs, plan.tasks, plan.pieces * plan.block >= 100_000) == (48, 10 * plan.pieces, True)
    assert 2 * 8 * plan.block <= ASCEND_910B1.unified_buffer


def test_operators_are_well_formed() -> None:
    caches = [torch.randn(4, 8), torch.randn(4, 2, 2)]
    opcheck("kv_block_copy", caches, torch.tensor([[0, 1]]))
    opcheck("kv_block_zero", caches, torch.tensor([1, -1]))


def test_nothing_to_do_changes_nothing() -> None:
    cache = torch.ones(2, 3)
    ascend_kernels.kv_block_copy([cache], torch.empty(0, 2, dtype=torch.int32))
    ascend_kernels.kv_block_zero([cache], torch.empty(0, dtype=torch.int32))
    ascend_kernels.kv_block_zero([torch.ones(2, 0)], torch.tensor([1]))
    assert cache.tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ascend_kernels.kv_block_copy([torch.ones(4, 4, 4).mT], torch.ones(1, 2).int()), "cache 0 is"),
        (lambda: ascend_kernels.kv_block_zero([torch.ones(4, 4), torch.ones(4)], torch.ones(1).int()), "cache 1 is"),
        (
            lambda: ascend_kernels.kv_block_zero([torch.ones(4, 4), torch.ones(4, 4, device="meta")], torch.ones(1)),
            "cache 1 is on meta",
        ),
        (lambda: ascend_kernels.kv_block_copy([torch.ones(4, 4)], torch.ones(3).int()), "kv_block_copy: pairs"),
        (lambda: ascend_kernels.kv_block_zero([torch.ones(4, 4)], torch.ones(3)), "kv_block_zero: blocks"),
    ],
    ids=["strided", "one-dimension", "devices", "pairs", "float"],
)
def test_what_does_not_go_is_refused(call: Callable[[], None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
