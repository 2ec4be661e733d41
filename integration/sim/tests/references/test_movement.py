# SPDX-License-Identifier: Apache-2.0
"""Moving tokens and blocks, against the loops and shapes of the vendor's pages."""

from __future__ import annotations

import pytest
import torch

from ascend_sim.references import limits

from .calls import call


@pytest.mark.parametrize("axis", [-2, -1, 2])
@pytest.mark.parametrize("batches", [False, True], ids=["offsets", "batches-and-offsets"])
def test_scatter_update(axis: int, batches: bool) -> None:
    """The page: data[r][j][p + k][l] = updates[i][j][k][l] for axis -2, data[r][j][k][p + l] = ... for axis -1."""
    data = torch.randn(5, 2, 6, 8)
    updates = torch.randn(3, 2, 3, 8) if axis in (-2, 2) else torch.randn(3, 2, 6, 3)
    offsets = [3, 0, 2]
    rows = [4, 0, 2] if batches else [0, 1, 2]
    expected = data.clone()
    for i, (row, start) in enumerate(zip(rows, offsets, strict=True)):
        if axis in (-2, 2):
            expected[row, :, start : start + 3] = updates[i]
        else:
            expected[row, :, :, start : start + 3] = updates[i]
    indices = torch.tensor([list(p) for p in zip(rows, offsets, strict=True)] if batches else offsets)
    untouched = data.clone()
    assert torch.equal(call("npu::scatter_update", data, indices, updates, axis), expected)
    assert torch.equal(data, untouched)
    call("npu::scatter_update_", data, indices, updates, axis)
    assert torch.equal(data, expected)


def test_scatter_update_refuses_what_the_hardware_would_write_elsewhere() -> None:
    with pytest.raises(RuntimeError, match=r"scatter_update_: indices is to reach 5 to 7; the hardware allows 0 to 5"):
        torch.ops.npu.scatter_update_(torch.ones(2, 6, 4), torch.tensor([5]), torch.ones(1, 3, 4), 1)


@pytest.mark.parametrize("lengths", [False, True], ids=["starts", "starts-and-lengths"])
@pytest.mark.parametrize("mask", [None, [1, 0, 1]], ids=["all", "masked"])
def test_scatter_list(lengths: bool, mask: list[int] | None) -> None:
    """The page: var[i][.., start + k, ..] = updates[i][.., k, ..] for k below the length."""
    data = [torch.randn(2, 6, 8) for _ in range(3)]
    updates = torch.randn(3, 2, 3, 8)
    starts, counts = [3, 0, 2], [3, 1, 2] if lengths else [3, 3, 3]
    expected = [t.clone() for t in data]
    for i in range(3):
        if mask is None or mask[i]:
            expected[i][:, starts[i] : starts[i] + counts[i]] = updates[i][:, : counts[i]]
    indices = torch.tensor([list(p) for p in zip(starts, counts, strict=True)] if lengths else starts)
    gate = None if mask is None else torch.tensor(mask, dtype=torch.uint8)
    arguments = (data, indices, updates, gate)  # torch_npu's Meta kernel of it fails without a mask
    out = torch.ops.npu.npu_scatter_list(*arguments) if mask is None else call("npu::npu_scatter_list", *arguments)
    assert all(torch.equal(a, b) for a, b in zip(out, expected, strict=True))
    torch.ops.npu.npu_scatter_list_(data, indices, updates, gate)
    assert all(torch.equal(a, b) for a, b in zip(data, expected, strict=True))


def test_scatter_pa_cache() -> None:
    key, cache = torch.randn(5, 2, 8).half(), torch.zeros(3, 4, 2, 8).half()
    slots = torch.tensor([11, 0, 7, 3, 4], dtype=torch.int32)
    expected = cache.clone()
    expected.view(12, 2, 8)[slots.long()] = key
    with limits.as_family(limits.Family.A5):
        out = call("npu::npu_scatter_pa_cache.value", key, slots, key_cache=cache)
    assert torch.equal(cache, expected)
    assert torch.equal(out, expected)


def test_scatter_pa_cache_exists_on_a5_only() -> None:
    with pytest.raises(RuntimeError, match="SoC family"):
        torch.ops.npu.npu_scatter_pa_cache(
            torch.ones(1, 2, 8), torch.zeros(1, dtype=torch.int32), key_cache=torch.zeros(1, 4, 2, 8)
        )


def test_transpose() -> None:
    x = torch.randn(2, 3, 5)
    out = call("npu::npu_transpose", x, [2, 0, 1])
    assert out.shape == (5, 2, 3)
    assert out.is_contiguous()
    assert torch.equal(out, x.permute(2, 0, 1))
    into = torch.zeros(5, 2, 3)
    call("npu::npu_transpose.out", x, [2, 0, 1], out=into)
    assert torch.equal(into, out)


def test_confusion_transpose() -> None:
    """The page's two examples."""
    x = torch.rand(2, 3, 4, 6)
    first = call("npu::npu_confusion_transpose", x, [0, 2, 1, 3], [2, 4, 18], True)
    assert torch.equal(first, x.permute(0, 2, 1, 3).reshape(2, 4, 18))
    second = call("npu::npu_confusion_transpose", x, [0, 2, 1], [2, 12, 6], False)
    assert second.shape == (2, 6, 12)
    assert torch.equal(second, x.reshape(2, 12, 6).permute(0, 2, 1))


def test_reshape() -> None:
    x = torch.rand(2, 8)
    out = call("npu::npu_reshape", x, [4, 4])
    assert torch.equal(out, x.view(4, 4))
    into = torch.zeros(4, 4)
    call("npu::npu_reshape.out", x, [4, 4], out=into)
    assert torch.equal(into, out)


def test_gather_sparse_index() -> None:
    x, index = torch.randn(16, 32), torch.tensor([[0, 15, 3], [7, 7, 1]])
    out = call("npu::npu_gather_sparse_index", x, index)
    assert out.shape == (2, 3, 32)
    assert torch.equal(out[1, 0], x[7])


def test_prefetch_changes_nothing() -> None:
    weight = torch.ones(4)
    assert call("npu::npu_prefetch", weight, None, 16) is None
    assert torch.equal(weight, torch.ones(4))
    with pytest.raises(RuntimeError, match="max_size is 0; the hardware allows at least 1"):
        torch.ops.npu.npu_prefetch(weight, None, 0)
