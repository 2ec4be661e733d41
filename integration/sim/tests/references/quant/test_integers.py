# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from ..calls import call
from ..oracle import as_float64
from .steps import assert_same_steps, by_token, int4_of, quantised

INT8, QINT8, QUINT8, QINT32 = 1, 12, 13, 14


@pytest.mark.parametrize("divide", [True, False], ids=["divide", "multiply"])
def test_quantize_along_the_last_axis(divide: bool) -> None:
    x, scale = torch.randn(4, 12) * 3, torch.rand(12) + 0.05
    zero = torch.randint(-5, 5, (12,), dtype=torch.int32) if divide else torch.randint(-5, 5, (12,)).float()
    values = as_float64(x) / as_float64(scale) if divide else as_float64(x) * as_float64(scale)
    y = call("npu::npu_quantize", x, scale, zero, QINT8, -1, divide)
    assert y.dtype == torch.int8
    assert_same_steps(y, quantised(values + as_float64(zero)))


@pytest.mark.parametrize(
    ("number", "dtype", "low", "high"), [(QUINT8, torch.uint8, 0, 255), (QINT32, torch.int32, -(2**31), 2**31 - 1)]
)
def test_quantize_to_other_dtypes(number: int, dtype: torch.dtype, low: int, high: int) -> None:
    x = torch.tensor([[-3.0, 0.5, 1.5, 300.0]])
    y = call("npu::npu_quantize", x, torch.ones(1), None, number, -1)
    assert y.dtype == dtype
    assert np.array_equal(as_float64(y), quantised(as_float64(x), low, high))


def test_dynamic_quant_per_token() -> None:
    x = torch.randn(5, 3, 16).half()
    y, scale = call("npu::npu_dynamic_quant", x)
    expected = np.abs(as_float64(x)).max(-1) / 127
    np.testing.assert_allclose(as_float64(scale), expected, rtol=1e-6)
    assert_same_steps(y, quantised(as_float64(x) / expected[..., None]))


def test_dynamic_quant_of_zeros_is_zero() -> None:
    y, scale = call("npu::npu_dynamic_quant", torch.zeros(2, 8).half())
    assert not y.any()
    assert not scale.any()


def test_dynamic_quant_with_smooth_scales_by_group() -> None:
    """Rows up to group_index[0] take row 0 of smooth_scales, those up to group_index[1] row 1, ..."""
    x, smooth = torch.randn(6, 8).half(), torch.rand(3, 8).half() + 0.5
    rows = np.array([0, 0, 2, 2, 2, 2])
    values = as_float64(x) * as_float64(smooth)[rows]
    scale = np.abs(values).max(-1) / 127
    y, actual = call(
        "npu::npu_dynamic_quant", x, smooth_scales=smooth, group_index=torch.tensor([2, 2, 6], dtype=torch.int32)
    )
    np.testing.assert_allclose(as_float64(actual), scale, rtol=1e-6)
    assert_same_steps(y, quantised(values / scale[:, None]))


def test_dynamic_quant_asymmetric() -> None:
    x = (torch.randn(7, 16) + 1).bfloat16()
    y, scale, offset = call("npu::npu_dynamic_quant_asymmetric", x)
    values = as_float64(x)
    expected = (values.max(-1) - values.min(-1)) / 255
    shift = 127 - values.max(-1) / expected
    np.testing.assert_allclose(as_float64(scale), expected, rtol=1e-5)
    np.testing.assert_allclose(as_float64(offset), shift, rtol=1e-4, atol=1e-4)
    assert_same_steps(y, quantised(values / expected[:, None] + shift[:, None]))


def test_group_quant_of_the_pages_example() -> None:
    """x 0 to 7 in two columns, scales 1 and 2, offset 2, groups ending with rows 1, 2 and 4."""
    x = torch.arange(8.0).view(4, 2)
    y = call(
        "npu::npu_group_quant",
        x,
        torch.tensor([[1.0, 2.0]] * 3),
        torch.tensor([1, 2, 4], dtype=torch.int32),
        offset=torch.tensor([2.0]),
    )
    assert y.dtype == torch.int8
    assert y.tolist() == [[2, 4], [4, 8], [6, 12], [8, 16]]


def test_group_quant_to_int4() -> None:
    x, scale = torch.randn(5, 16) * 3, torch.rand(3, 16) + 0.5
    y = call("npu::npu_group_quant", x, scale, torch.tensor([2, 2, 5], dtype=torch.int32), dst_dtype=torch.quint4x2)
    assert_same_steps_int4(y, as_float64(x) * as_float64(scale)[[0, 0, 2, 2, 2]])


def assert_same_steps_int4(packed: torch.Tensor, values: np.ndarray) -> None:
    difference = np.abs(int4_of(packed) - quantised(values, -8, 7))
    assert difference.max() <= 1
    assert (difference != 0).mean() <= 0.01


def test_group_quant_refuses_groups_that_leave_rows_out() -> None:
    with pytest.raises(RuntimeError, match="group_index"):
        torch.ops.npu.npu_group_quant(torch.ones(4, 8), torch.ones(1, 8), torch.tensor([3], dtype=torch.int32))


def test_dynamic_quant_to_int4() -> None:
    x = torch.randn(5, 32).half()
    y, scale = call("npu::npu_dynamic_quant", x, dst_type=16)
    steps, expected = by_token(as_float64(x), 7)
    np.testing.assert_allclose(as_float64(scale), expected, rtol=1e-6)
    difference = np.abs(int4_of(y) - steps)
    assert difference.max() <= 1
    assert (difference != 0).mean() <= 0.01


@pytest.mark.parametrize(("mode", "axes", "shape"), [("perchannel", -2, (3, 8)), ("pertensor", None, (1,))])
def test_dynamic_quant_by_channel_and_tensor(mode: str, axes: int | None, shape: tuple[int, ...]) -> None:
    x = torch.randn(3, 6, 8).half()
    y, scale = torch.ops.npu.npu_dynamic_quant(x, quant_mode=mode)
    expected = np.abs(as_float64(x)).max(axes, keepdims=True) / 127
    np.testing.assert_allclose(as_float64(scale), expected.reshape(shape), rtol=1e-6)
    assert_same_steps(y, quantised(as_float64(x) / expected))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("size", [1, 7, 8, 33])
def test_dynamic_quant_rounds_halves_to_even_and_takes_zeros_and_nan(dtype: torch.dtype, size: int) -> None:
    """Exact: with a largest value of 127 the scale is 1, and halves are numbers of every dtype."""
    x = torch.zeros(4, size, dtype=dtype)
    x[0] = torch.arange(size) - 0.5
    x[0, -1] = -127
    x[2, -1], x[3, 0] = torch.nan, torch.inf
    y, scale = call("npu::npu_dynamic_quant", x)
    assert scale.nan_to_num(-1).tolist() == [1, 0, -1, torch.finfo(torch.float32).max]
    halves = [round(n - 0.5) for n in range(size)]  # Python's round, too, takes halves to even
    assert y[0].tolist() == [*halves[:-1], -127]
    assert not y[1:].any()


def test_anti_quant_of_the_pages_example() -> None:
    x = torch.tensor([1, 2, 3, 4], dtype=torch.int8)
    y = call("npu::npu_anti_quant", x, torch.tensor([2.0]), offset=torch.tensor([2.0]), dst_dtype=5)
    assert y.dtype == torch.float16
    assert y.tolist() == [6, 8, 10, 12]


def test_anti_quant_of_int4() -> None:
    """0x76543210 holds 0 to 7; 0xfedcba98 holds -8 to -1."""
    x = torch.tensor([0x76543210, 0xFEDCBA98 - 2**32], dtype=torch.int32)
    y = call("npu::npu_anti_quant", x, torch.tensor([0.5]), dst_dtype=15)
    assert y.dtype == torch.bfloat16
    assert y.tolist() == [v / 2 for v in [*range(8), *range(-8, 0)]]


def test_quantize_per_tensor_of_atb() -> None:
    """The golden rounds before it adds the zero point."""
    x, scale = torch.randn(6, 32).half() * 4, torch.tensor([0.3]).half()
    zero, y = torch.tensor([5], dtype=torch.int8), torch.empty(6, 32, dtype=torch.int8)
    call("atb::_npu_quantize_per_tensor", x, scale, zero, y)
    assert_same_steps(y, np.clip(np.rint(as_float64(x) / as_float64(scale)) + 5, -128, 127))
