# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from ascend_sim.references import limits

from ..calls import call
from ..oracle import as_float64

E5M2, E4M3, E2M1, E1M2 = 23, 24, 296, 297
FP4 = {E2M1: (0, 0.5, 1, 1.5, 2, 3, 4, 6), E1M2: (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75)}
LARGEST_EXPONENT = {E5M2: 15, E4M3: 8, E2M1: 2, E1M2: 0}


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with limits.as_family(limits.Family.A5):
        yield


def bytes_of(tensor: torch.Tensor) -> list[int]:
    return tensor.view(torch.uint8).flatten().tolist()


def fp4(packed: torch.Tensor, number: int) -> np.ndarray:
    """Values of float4 codes, two to a byte, the first in the low bits."""
    codes = np.stack((packed.numpy() & 15, packed.numpy() >> 4), -1).reshape(*packed.shape[:-1], -1)
    return np.array(FP4[number])[codes & 7] * np.where(codes & 8, -1, 1)


def test_example_of_the_page() -> None:
    x = torch.tensor([[0.0, 8, 64, 512]]).bfloat16()
    y, scale = call("npu::npu_dynamic_mx_quant", x, dst_type=E4M3)
    assert y.dtype == torch.float8_e4m3fn
    assert bytes_of(y) == [0, 72, 96, 120]
    assert scale.shape == (1, 1, 2)
    assert bytes_of(scale) == [128, 0]


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("number", [E5M2, E4M3, E2M1, E1M2])
def test_every_block_has_the_exponent_of_its_largest(number: int, axis: int) -> None:
    x = (torch.randn(4, 70, 96) * torch.randn(4, 70, 1).mul(4).exp()).bfloat16()
    y, scale = call("npu::npu_dynamic_mx_quant", x, axis=axis, dst_type=number)
    values = np.moveaxis(as_float64(x), axis, -1)
    size = values.shape[-1]
    values = np.pad(values, [(0, 0)] * 2 + [(0, -size % 64)])
    blocks = values.reshape(*values.shape[:-1], -1, 32)
    largest = np.abs(blocks).max(-1)
    code = np.floor(np.log2(np.where(largest, largest, 1))) - LARGEST_EXPONENT[number] + 127
    code = np.where(largest > 0, code, 0)
    found = np.moveaxis(scale.view(torch.uint8).numpy(), axis - 1 if axis < 0 else axis, -2)
    assert np.array_equal(found.reshape(code.shape), code)
    scaled = (blocks / 2.0 ** (code - 127)[..., None]).reshape(values.shape)[..., :size]
    elements = fp4(y, number) if number in FP4 else as_float64(y.float())
    elements = np.moveaxis(elements, axis, -1)
    if number in FP4:
        table = np.array(FP4[number])
        nearest = table[np.abs(np.abs(scaled)[..., None] - table).argmin(-1)]
        error = np.abs(np.abs(elements) - np.abs(scaled))
        assert np.allclose(error, np.abs(nearest - np.abs(scaled)), atol=1e-12)
    else:
        dtype = torch.float8_e5m2 if number == E5M2 else torch.float8_e4m3fn
        bound = torch.finfo(dtype).max
        assert np.array_equal(elements, as_float64(torch.tensor(scaled).clamp(-bound, bound).to(dtype).float()))


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        ("rint", [6.0, 2.0, -2.0, 1.0, 4.0, 0.0, -3.0, 0.5]),
        ("floor", [6.0, 2.0, -3.0, 1.0, 3.0, 0.0, -3.0, 0.5]),
        ("round", [6.0, 3.0, -3.0, 1.5, 4.0, 0.5, -3.0, 0.5]),
    ],
)
def test_roundings_of_float4(rounding: str, expected: list[float]) -> None:
    """On ties (2.5 lies between 2 and 3) and on 3.6; the scale is 1 as the largest value is 6."""
    x = torch.tensor([[6.0, 2.5, -2.5, 1.25, 3.6, 0.25, -3.0, 0.5]])
    x = x.bfloat16() if rounding != "rint" else x.half()
    y, scale = call("npu::npu_dynamic_mx_quant", x, round_mode=rounding, dst_type=E2M1)
    assert bytes_of(scale)[0] == 127
    assert fp4(y, E2M1).flatten().tolist() == expected


def test_scale_by_division_rounds_up_to_a_power_of_two() -> None:
    """scale_alg 1: max / 448 is 1, just above 1 and 2 ** -9; a lower bound of 448 makes the last 1."""
    x = torch.zeros(4, 32)
    x[:, 0] = torch.tensor([448.0, 450, 0.875, 0.875])
    _, scale = call("npu::npu_dynamic_mx_quant", x.bfloat16(), dst_type=E4M3, scale_alg=1)
    assert scale.view(torch.uint8)[:, 0, 0].tolist() == [127, 128, 118, 118]
    _, scale = call("npu::npu_dynamic_mx_quant", x[3:].bfloat16(), dst_type=E4M3, scale_alg=1, max_low_bound=448.0)
    assert scale.view(torch.uint8)[:, 0, 0].tolist() == [127]


@pytest.mark.parametrize("number", [E4M3, E2M1])
def test_anti_mx_quant_goes_back(number: int) -> None:
    x = (torch.randint(-3, 4, (3, 64)) * 2.0 ** torch.randint(-3, 4, (3, 1))).bfloat16()
    y, scale = torch.ops.npu.npu_dynamic_mx_quant(x, dst_type=number)
    back = call("npu::npu_anti_mx_quant", y, scale.view(torch.float8_e8m0fnu), dst_type=15, src_type=number)
    assert torch.equal(back, x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dst_type": E4M3, "round_mode": "floor"}, "round_mode is floor"),
        ({"dst_type": E2M1, "scale_alg": 1}, "scale_alg is 1"),
        ({"block_size": 48}, "block_size is 48"),
        ({"dst_type": 290}, "dst_type"),
        ({"dst_type": E2M1, "scale_alg": 2}, "not simulated"),
    ],
)
def test_refusals(options: dict[str, object], message: str) -> None:
    with pytest.raises((RuntimeError, NotImplementedError), match=message):
        torch.ops.npu.npu_dynamic_mx_quant(torch.ones(2, 64).half(), **options)


@pytest.mark.parametrize("number", [E4M3, E2M1])
def test_both_axes_at_once(number: int) -> None:
    x = torch.randn(2, 70, 96).bfloat16()
    results = call("npu::npu_dynamic_mx_quant_with_dual_axis", x, dst_type=number)
    for axis, y, scale in ((-1, *results[:2]), (-2, *results[2:])):
        expected = torch.ops.npu.npu_dynamic_mx_quant(x, axis=axis, dst_type=number)
        assert bytes_of(y) == bytes_of(expected[0])
        assert bytes_of(scale) == bytes_of(expected[1])


@pytest.mark.parametrize("ends", [None, [2, 2, 5]])
def test_quant_max(ends: list[int] | None) -> None:
    """By the page: y = cast(x[g] * scale[g]) and amax[g] = max(|x[g]|)."""
    x, scale = torch.randn(5, 8).bfloat16(), torch.rand(3 if ends else 1) + 0.5
    index = None if ends is None else torch.tensor(ends)
    y, largest = call("npu::npu_quant_max", x, scale, dst_dtype=292, group_list=index)
    rows = [0, 0, 2, 2, 2] if ends else [0] * 5
    expected = (x.float() * scale[rows, None]).to(torch.float8_e4m3fn)
    assert bytes_of(y) == bytes_of(expected)
    by_group = [x[:2].abs().max().item(), 0.0, x[2:].abs().max().item()] if ends else [x.abs().max().item()]
    assert largest.tolist() == by_group
