"""Memory that sleeps: tensors are whole again afterwards, and the device has more free meanwhile."""

from __future__ import annotations

import pytest
import torch

from vllm_ascend.worker.sleeping import SleepingMemory, tensors_in

ELEMENTS = 1 << 20


def test_what_is_kept_comes_back_in_every_view_and_the_rest_as_zeros() -> None:
    weight = torch.arange(ELEMENTS, dtype=torch.float32, device="npu")
    view, tied = weight.view(1024, -1)[3], torch.nn.Parameter(weight, requires_grad=False)
    cache = torch.ones(ELEMENTS, device="npu")
    before = torch.npu.memory_allocated()
    memory = SleepingMemory(torch.device("npu", 0), pin_memory=True)
    assert memory.sleep("weights", [weight, view, tied], keep=True) == 4 * ELEMENTS
    assert memory.sleep("kv_cache", tensors_in([(cache, cache[:2]), {"none": None}]), keep=False) == 4 * ELEMENTS
    assert before - torch.npu.memory_allocated() >= 8 * ELEMENTS
    assert memory.sleep("weights", [weight], keep=True) == 0  # asleep already
    assert memory.tags == ["weights", "kv_cache"]

    memory.wake("weights")
    assert memory.tags == ["kv_cache"]
    memory.wake("kv_cache")
    assert view[:2].tolist() == [3072, 3073]
    assert tied.data_ptr() == weight.data_ptr()
    assert torch.equal(weight.cpu(), torch.arange(ELEMENTS, dtype=torch.float32))
    assert not cache.any()
    memory.wake("weights")  # awake already
    assert weight[5] == 5


def test_waking_on_a_full_device_loses_nothing() -> None:
    weights = [torch.full((64 << 20,), value, dtype=torch.uint8, device="npu") for value in (1, 2)]
    memory = SleepingMemory(torch.device("npu", 0), pin_memory=True)
    memory.sleep("weights", weights, keep=True)
    torch.npu.empty_cache()
    taken = torch.empty(torch.npu.mem_get_info()[0] - (96 << 20), dtype=torch.uint8, device="npu")
    with pytest.raises(torch.OutOfMemoryError):
        memory.wake("weights")
    del taken
    torch.npu.empty_cache()
    memory.wake("weights")
    assert [weight.float().mean().item() for weight in weights] == [1, 2]
    assert memory.tags == []


def test_what_lies_elsewhere_stays() -> None:
    host = torch.ones(4)
    memory = SleepingMemory(torch.device("npu", 0), pin_memory=True)
    assert memory.sleep("weights", [host], keep=False) == 0
    assert host.tolist() == [1, 1, 1, 1]
