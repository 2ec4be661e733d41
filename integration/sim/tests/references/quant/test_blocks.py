# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import struct

import numpy as np
import pytest
import torch

from ascend_sim.references import limits

from ..calls import call
from ..oracle import as_float64
from .steps import assert_same_steps, int4_of, quantised


@pytest.mark.parametrize("shape", [(3, 256), (2, 3, 130)])
def test_block_quant_of_the_vendors_golden(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape).half()
    y, scale = call("npu::npu_dynamic_block_quant", x)
    values = as_float64(x)
    for start in range(0, shape[-1], 128):
        block = values[..., start : start + 128]
        largest = np.abs(block).max(-1)
        np.testing.assert_allclose(as_float64(scale)[..., start // 128], largest / 127, rtol=1e-6)
        assert_same_steps(y[..., start : start + 128], quantised(block * 127 / largest[..., None]))


@limits.as_family(limits.Family.A5)
def test_block_quant_to_float8_bounds_the_scale() -> None:
    """Blocks of 128 rows and columns; the scale is at most 1 / min_scale."""
    x = torch.full((130, 256), 448.0)
    x[:128, :128] = 4480.0
    y, scale = call("npu::npu_dynamic_block_quant", x.bfloat16(), min_scale=0.5, dst_type=292, row_block_size=128)
    assert y.dtype == torch.float8_e4m3fn
    np.testing.assert_allclose(as_float64(scale), [[2, 1], [1, 1]], rtol=2**-7)
    assert y[:, 128:].float().unique().tolist() == [448]


@pytest.mark.parametrize("ratio", [None, 0.5])
def test_kronecker_quant(ratio: float | None) -> None:
    x, p1, p2 = torch.randn(3, 4, 8).half(), torch.randn(4, 4).half(), torch.randn(8, 8).half()
    y, scale = call("npu::npu_kronecker_quant", x, p1, p2, ratio)
    product = as_float64(x) @ as_float64(p2)
    rotated = as_float64(p1) @ product
    expected = np.abs(rotated).max((1, 2)) / 7 / (ratio or 1)
    np.testing.assert_allclose(as_float64(scale), expected, rtol=2e-3)
    difference = np.abs(int4_of(y) - quantised(rotated / as_float64(scale)[:, None, None], -8, 7))
    assert difference.max() <= 1
    assert (difference != 0).mean() <= 0.03


def test_kronecker_quant_to_float4() -> None:
    x, one = torch.zeros(2, 4, 16).half(), torch.eye(4).half()
    x[0, 0, :4] = torch.tensor([1.0, 2, 3, -6])
    y, scale = call("npu::npu_kronecker_quant", x, one, torch.eye(16).half(), None, 296)
    assert y[0, :2].tolist() == [0x42, 0xF5]
    assert not y[0, 2:].any()
    assert scale.view(torch.uint8)[0].tolist() == [[127, 0]]


def test_int4pack_lays_the_first_value_lowest() -> None:
    weight = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [-8, -7, -6, -5, -4, -3, -2, -1]], dtype=torch.int32)
    packed = call("npu::npu_convert_weight_to_int4pack", weight)
    assert packed.tolist() == [[0x76543210], [0xFEDCBA98 - 2**32]]


@pytest.mark.parametrize("values", [[8] * 8, [1] * 6])
def test_int4pack_refuses(values: list[int]) -> None:
    with pytest.raises(RuntimeError, match="npu_convert_weight_to_int4pack"):
        torch.ops.npu.npu_convert_weight_to_int4pack(torch.tensor([values], dtype=torch.int32))


def test_trans_quant_param_sets_the_documented_bits() -> None:
    """The high 19 bits of the float, bit 46, and a 9-bit offset at bit 37."""
    scale, offset = torch.tensor([1.1, 0.3, 2.0]), torch.tensor([5.0, -3.0, 1000.0])
    words = [struct.unpack("<I", struct.pack("<f", value))[0] & 0xFFFFE000 for value in scale.tolist()]
    plain = call("npu::npu_trans_quant_param", scale)
    assert plain.tolist() == [word | 1 << 46 for word in words]
    moved = call("npu::npu_trans_quant_param", scale, offset)
    steps = [5, -3 & 0x1FF, 255]
    assert moved.tolist() == [word | 1 << 46 | step << 37 for word, step in zip(words, steps, strict=True)]


def test_trans_quant_param_rounds_if_asked() -> None:
    """1 + 2 ** -10 is kept, 1 + 3 * 2 ** -12 lies above the middle of two kept values."""
    kept, upper = struct.unpack("<2I", struct.pack("<2f", 1 + 2**-10, 1 + 2**-10))
    out = call("npu::npu_trans_quant_param", torch.tensor([1 + 2**-10, 1 + 3 * 2**-12]), None, 1)
    assert out.tolist() == [kept | 1 << 46, upper | 1 << 46]
