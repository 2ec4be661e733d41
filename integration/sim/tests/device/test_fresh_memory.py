"""Results that a CPU kernel writes into memory of the NPU's allocator."""

import gc

import pytest
import torch
import torch_npu


def charge(count: int) -> int:
    """What the allocator charges for so many float32 numbers, its padding included."""
    before = torch.npu.memory_allocated()
    kept = torch.empty(count, device="npu")
    return torch.npu.memory_allocated() - before + 0 * kept.numel()


def test_results_are_charged_to_the_device_and_given_back() -> None:
    x = torch.ones(1 << 20, device="npu")
    gc.collect()
    before = torch.npu.memory_allocated()
    y = x + 1
    assert torch.npu.memory_allocated() - before == charge(1 << 20) >= y.nbytes
    del y
    assert torch.npu.memory_allocated() == before


def test_a_number_costs_no_device_memory() -> None:
    x = torch.ones(1 << 20, device="npu")
    gc.collect()
    expected, before = charge(1 << 20), torch.npu.memory_allocated()
    torch.npu.reset_peak_memory_stats()
    y = x + 1.5  # the kernel makes a tensor of the number first
    assert torch.npu.max_memory_allocated() - before == expected
    assert y[0].item() == 2.5


@pytest.mark.parametrize(
    "shape", [(), (0,), (3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 1, 2, 2, 2), (1, 1, 1, 1, 1, 2)]
)
def test_results_are_made_as_torch_npu_makes_tensors(shape: tuple[int, ...]) -> None:
    made, result = torch.empty(shape, device="npu"), torch.ones(shape, device="npu") * 2
    assert torch_npu.get_npu_format(result) == torch_npu.get_npu_format(made)
    assert torch_npu.get_storage_size(result) == torch_npu.get_storage_size(made)
    assert type(result) is torch.Tensor
    assert result.untyped_storage().nbytes() == made.untyped_storage().nbytes()
    assert (result._version, result.requires_grad, result.is_inference()) == (0, False, False)
    assert result.resize_(7).shape == (7,)


def test_strides_are_the_kernels() -> None:
    x = torch.ones(2, 3, 4, device="npu").transpose(0, 2)
    assert (x * 2).stride() == x.stride()


def test_inference_mode() -> None:
    x = torch.ones(3, device="npu")
    with torch.inference_mode():
        assert (x + 1).is_inference()
    assert not (x + 1).is_inference()


def test_a_device_that_is_not_the_current_one() -> None:
    assert torch.npu.current_device() == 0
    x = torch.arange(4, device="npu:1")
    before = torch.npu.memory_allocated(1)
    y = x * 2
    assert (y.device, y.tolist()) == (torch.device("npu:1"), [0, 2, 4, 6])
    assert torch.npu.memory_allocated(1) - before == 512


def test_kernels_that_allocate_without_an_owner() -> None:
    """oneDNN's matrix product in bfloat16 allocates scratch memory and frees it by address."""
    a, b = (
        torch.ones(64, 128, dtype=torch.bfloat16, device="npu"),
        torch.ones(128, 32, dtype=torch.bfloat16, device="npu"),
    )
    gc.collect()
    before = torch.npu.memory_allocated()
    for _ in range(20):
        assert (a @ b)[0, 0].item() == 128
        torch.nn.functional.gelu(a)
        torch.nn.functional.conv1d(a[None], torch.ones(8, 64, 3, dtype=torch.bfloat16, device="npu"))
    gc.collect()
    assert torch.npu.memory_allocated() == before
