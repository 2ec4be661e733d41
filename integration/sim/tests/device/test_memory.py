"""Device memory: accounting, the cap, statistics, pinned memory."""

import gc

import pytest
import torch

GIB = 1 << 30
PADDING = 512  # torch_npu adds 32 bytes to a block and rounds it up to 512
ROUNDING = 20 << 20  # its allocator takes large blocks from the runtime in pieces of 20 MiB at most


@pytest.fixture(autouse=True)
def _clean():
    gc.collect()
    torch.npu.empty_cache()
    yield
    gc.collect()
    torch.npu.empty_cache()


def test_free_memory_falls_and_rises_with_allocations() -> None:
    free, total = torch.npu.mem_get_info()
    assert total == 8 * GIB
    tensor = torch.empty(GIB, dtype=torch.uint8, device="npu")
    assert GIB <= free - torch.npu.mem_get_info()[0] <= GIB + ROUNDING
    del tensor
    torch.npu.empty_cache()
    assert torch.npu.mem_get_info() == (free, total)


def test_devices_have_their_own_memory() -> None:
    free = torch.npu.mem_get_info(1)[0]
    tensor = torch.empty(GIB, dtype=torch.uint8, device="npu:0")
    assert torch.npu.mem_get_info(1)[0] == free
    del tensor


def test_statistics_follow_torch_npus_allocator() -> None:
    torch.npu.reset_peak_memory_stats()
    before = torch.npu.memory_allocated()
    tensor = torch.empty(32 << 20, dtype=torch.uint8, device="npu")
    assert torch.npu.memory_allocated() - before == (32 << 20) + PADDING
    del tensor
    assert torch.npu.memory_allocated() == before
    assert torch.npu.max_memory_allocated() - before == (32 << 20) + PADDING


def test_too_much_is_torch_npus_own_out_of_memory_error() -> None:
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        torch.empty(9 * GIB, dtype=torch.uint8, device="npu")
    assert torch.ones(2, device="npu").sum().item() == 2


def test_pinned_memory() -> None:
    host = torch.arange(4.0).pin_memory()
    assert host.is_pinned()
    device = host.to("npu", non_blocking=True)
    assert device.tolist() == [0, 1, 2, 3]
    assert torch.empty(4, pin_memory=True).is_pinned()
    assert not torch.empty(4).is_pinned()
