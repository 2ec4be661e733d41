# SPDX-License-Identifier: Apache-2.0
"""Quantising with given scales, and the way back."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.quant.dtypes import INT4_NUMBERS, float_dtype, plain_dtype
from ascend_sim.references.quant.integers import pack_int4, saturate, saturate_int4, unpack_int4
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_doc


def scaled(values: Tensor, scale: Tensor, offset: Tensor | None, divide: bool) -> Tensor:
    """``values / scale + offset``, or with ``divide`` False times ``scale``; float32."""
    result = values / scale.float() if divide else values * scale.float()
    return result if offset is None else result + offset.float()


@reference("npu::npu_quantize", source=wheel_doc("npu_quantize"), grade=Grade.DOCUMENTED)
def npu_quantize(
    input: Tensor, scales: Tensor, zero_points: Tensor | None, dtype: int, axis: int = 1, div_mode: bool = True
) -> Tensor:
    """``input / scales + zero_points``, or with ``div_mode`` False times ``scales``; int4 comes packed as int32.

    One-dimensional scales lie along ``axis``; without ``div_mode`` that is the last but one for -2 and else the last.
    """
    along = axis % input.dim() if div_mode else input.dim() - (2 if axis == -2 else 1)
    shape = [1] * input.dim()
    shape[along] = -1
    scale = scales.reshape(shape) if scales.dim() == 1 else scales
    offset = zero_points.reshape(shape) if zero_points is not None and zero_points.dim() == 1 else zero_points
    values = scaled(input.float(), scale, offset, div_mode)
    if dtype in INT4_NUMBERS:
        if div_mode:
            raise limits.refuse("npu_quantize", "dtype", dtype, "qint8, quint8 and int32 with div_mode")
        return pack_int4(saturate_int4(values))
    return saturate(values, plain_dtype("npu_quantize", "dtype", dtype))


def group_rows(op: str, ends: Tensor, rows: int) -> Tensor:
    """The group of each row, by the groups' last rows; the last must be ``rows``."""
    if int(ends[-1]) != rows:
        raise limits.refuse(op, "group_index[-1]", int(ends[-1]), f"{rows}, the rows of x")
    return torch.searchsorted(ends.long(), torch.arange(rows), right=True)


@reference(
    "npu::npu_group_quant", source=cann_doc("ops-nn", "quant/group_quant/docs/aclnnGroupQuant.md"), grade=Grade.GOLDEN
)
def npu_group_quant(
    x: Tensor,
    scale: Tensor,
    group_index: Tensor,
    *,
    offset: Tensor | None = None,
    dst_dtype: torch.dtype | None = None,
) -> Tensor:
    """``round(x * scale[group] + offset)`` with ``group_index`` the groups' ends; int8, or int4 packed as int32."""
    values = scaled(x.float(), scale[group_rows("npu_group_quant", group_index, len(x))], offset, divide=False)
    if dst_dtype == torch.quint4x2:
        return pack_int4(saturate_int4(values))
    if dst_dtype not in (None, torch.int8, torch.qint8):
        raise limits.not_simulated("npu_group_quant", "dst_dtype", dst_dtype)
    return saturate(values, torch.int8)


@reference("npu::npu_anti_quant", source=wheel_doc("npu_anti_quant"), grade=Grade.DOCUMENTED)
def npu_anti_quant(
    x: Tensor,
    scale: Tensor,
    *,
    offset: Tensor | None = None,
    dst_dtype: int | None = None,
    src_dtype: int | None = None,
) -> Tensor:
    """``(x + offset) * scale`` of int8 or packed int4 (int32 ``x``), in float16 unless ``dst_dtype`` says otherwise."""
    values = (unpack_int4(x) if x.dtype == torch.int32 else x).float()
    target = torch.float16 if dst_dtype is None else float_dtype("npu_anti_quant", "dst_dtype", dst_dtype)
    return ((values if offset is None else values + offset.float()) * scale.float()).to(target)


@reference("atb::_npu_quantize_per_tensor", source=op_plugin_test("test_atb_quant_per_tensor"), grade=Grade.GOLDEN)
def _npu_quantize_per_tensor(x: Tensor, scale: Tensor, zero_point: Tensor, y: Tensor) -> None:
    """Write ``round(x / scale) + zero_point`` into ``y``; an empty ``zero_point`` counts as 0."""
    values = (x.float() / scale.float()).round_()
    y.copy_(saturate(values + zero_point.float() if zero_point.numel() else values, y.dtype))


@reference("npu::npu_quant_max", source=wheel_doc("npu_quant_max"), grade=Grade.DOCUMENTED, note="not hifloat8")
def npu_quant_max(
    x: Tensor, scale: Tensor, *, round_mode: str = "rint", dst_dtype: int = 291, group_list: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """float8 ``x * scale`` and the largest magnitude of x; both by group of rows, given by the groups' ends."""
    op = "npu_quant_max"
    dtype = plain_dtype(op, "dst_dtype", dst_dtype)
    if dtype.itemsize != 1 or not dtype.is_floating_point:
        raise limits.not_simulated(op, "dst_dtype", dst_dtype)
    if round_mode != "rint":
        raise limits.refuse(op, "round_mode", round_mode, "rint for float8")
    values = x.float()
    if group_list is None or len(group_list) <= 1:
        return saturate(values * scale, dtype), x.abs().amax().reshape(1)
    group = group_rows(op, group_list, len(x))
    factor = scale[group].view(-1, *[1] * (x.dim() - 1))
    largest = torch.zeros(len(group_list)).scatter_reduce(0, group, values.flatten(1).abs().amax(1), "amax")
    return saturate(values * factor, dtype), largest.to(x.dtype)
