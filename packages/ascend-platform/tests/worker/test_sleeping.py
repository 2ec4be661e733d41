"""Memory that sleeps: tensors are whole again afterwards, and the device has more free meanwhile."""

from __future__ import annotations

import torch

from vllm_ascend.worker.sleeping import SleepingMemory, tensors_in

ELEMENTS = 1 << 20


def test_what_is_kept_comes_back_in_every_view_and_the_rest_as_zeros() -> None:
    weight = torch.arange(ELEMENTS, dtype=torch.float32, device="npu")
    view, tied = weight.view(1024, -1)[3], torch.nn.Parameter(weight, requires_grad=False)
    cache = torch.ones(ELEMENTS, device="npu")
    before = torch.npu.memory_allocated()
    memory = SleepingMemory(pin_memory=True)
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
