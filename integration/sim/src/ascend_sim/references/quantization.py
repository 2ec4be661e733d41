# SPDX-License-Identifier: Apache-2.0
"""Quantising activations to int8: ``y = round(x / scale + offset)``, half to even, saturated."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.norm import rms_norm_float
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_doc

_DTYPES = {0: torch.uint8, 1: torch.int8, 3: torch.int32, 12: torch.int8, 13: torch.uint8, 14: torch.int32}
"""Results by torch's number of a dtype: uint8, int8, int32, and their quantised kin (qint8, quint8, qint32)."""


def _dtype(op: str, argument: str, number: int | None) -> torch.dtype:
    if number is None:
        return torch.int8
    if number not in _DTYPES:
        raise limits.not_simulated(op, argument, number)
    return _DTYPES[number]


def saturate(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Round half to even and clamp to the range of ``dtype``."""
    info = torch.iinfo(dtype)
    return values.round().clamp_(info.min, info.max).to(dtype)


def _apply(values: Tensor, scale: Tensor, offset: Tensor | None, divide: bool) -> Tensor:
    scaled = values / scale.float() if divide else values * scale.float()
    return scaled if offset is None else scaled + offset.float()


@reference("npu::npu_quantize", source=wheel_doc("npu_quantize"), grade=Grade.DOCUMENTED)
def npu_quantize(
    input: Tensor, scales: Tensor, zero_points: Tensor | None, dtype: int, axis: int = 1, div_mode: bool = True
) -> Tensor:
    """``input / scales + zero_points``, or with ``div_mode`` False times ``scales``.

    One-dimensional scales lie along ``axis``; without ``div_mode`` that is the last but one for -2 and else the last.
    """
    target = _dtype("npu_quantize", "dtype", dtype)
    along = axis % input.dim() if div_mode else input.dim() - (2 if axis == -2 else 1)
    shape = [1] * input.dim()
    shape[along] = -1
    scale = scales.reshape(shape) if scales.dim() == 1 else scales
    offset = zero_points.reshape(shape) if zero_points is not None and zero_points.dim() == 1 else zero_points
    return saturate(_apply(input.float(), scale, offset, div_mode), target)


def per_token(values: Tensor) -> tuple[Tensor, Tensor]:
    """int8 with one scale per row, ``max(abs(row)) / 127``; float32 in and scales out. A row of zeros gives zeros."""
    scale = values.abs().amax(-1) / 127
    return saturate(values / scale.masked_fill(scale == 0, 1.0).unsqueeze(-1), torch.int8), scale


def _smooth(op: str, input: Tensor, smooth_scales: Tensor | None, group_index: Tensor | None) -> Tensor:
    """``input`` times its smoothing row: one for all, or one a group, with ``group_index`` the groups' last rows."""
    values = input.float()
    if smooth_scales is None:
        return values
    if group_index is None:
        return values * smooth_scales.float()
    counts = torch.diff(group_index.long(), prepend=group_index.new_zeros(1, dtype=torch.long))
    rows = values.numel() // values.shape[-1]
    if int(group_index[-1]) != rows:
        raise limits.refuse(op, "group_index[-1]", int(group_index[-1]), f"{rows}, the rows of input")
    return values * smooth_scales.float().repeat_interleave(counts, 0).view_as(values)


@reference("npu::npu_dynamic_quant", source=wheel_doc("npu_dynamic_quant"), grade=Grade.DOCUMENTED)
def npu_dynamic_quant(
    input: Tensor,
    *,
    smooth_scales: Tensor | None = None,
    group_index: Tensor | None = None,
    dst_type: int | None = None,
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """int8 per token and the scales, float32, shaped like input without its last dimension."""
    op = "npu_dynamic_quant"
    if quant_mode != "pertoken" or _dtype(op, "dst_type", dst_type) != torch.int8:
        raise limits.not_simulated(op, "quant_mode, dst_type", (quant_mode, dst_type))
    return per_token(_smooth(op, input, smooth_scales, group_index))


@reference(
    "npu::npu_dynamic_quant_asymmetric", source=wheel_doc("npu_dynamic_quant_asymmetric"), grade=Grade.DOCUMENTED
)
def npu_dynamic_quant_asymmetric(
    input: Tensor,
    *,
    smooth_scales: Tensor | None = None,
    group_index: Tensor | None = None,
    dst_type: int | None = None,
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """int8 per token with ``scale = (max - min) / 255`` and ``offset = 127 - max / scale``."""
    op = "npu_dynamic_quant_asymmetric"
    if quant_mode != "pertoken" or _dtype(op, "dst_type", dst_type) != torch.int8:
        raise limits.not_simulated(op, "quant_mode, dst_type", (quant_mode, dst_type))
    values = _smooth(op, input, smooth_scales, group_index)
    low, high = values.aminmax(dim=-1)
    scale = (high - low) / 255
    offset = 127 - high / scale
    return saturate(values / scale.unsqueeze(-1) + offset.unsqueeze(-1), torch.int8), scale, offset


@reference(
    "npu::npu_add_rms_norm_quant",
    source=cann_doc("ops-nn", "norm/add_rms_norm_quant_v2/docs/aclnnAddRmsNormQuantV2.md"),
    grade=Grade.DOCUMENTED,
    note="without scales2 the second result is zeros",
)
def npu_add_rms_norm_quant(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    scales1: Tensor,
    zero_points1: Tensor | None,
    beta: Tensor | None = None,
    scales2: Tensor | None = None,
    zero_points2: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-6,
    div_mode: bool = True,
    dst_type: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``(y1, y2, x)``: the normalised sum plus beta, quantised with each pair of scales, and the sum."""
    target = _dtype("npu_add_rms_norm_quant", "dst_type", dst_type)
    x = x1 + x2
    values, _ = rms_norm_float(x, gamma, epsilon)
    if beta is not None:
        values = values + beta.float()
    first = saturate(_apply(values, scales1, zero_points1, div_mode), target)
    if scales2 is None:
        return first, torch.zeros_like(first), x
    return first, saturate(_apply(values, scales2, zero_points2, div_mode), target), x


@reference(
    "npu::npu_add_rms_norm_dynamic_quant",
    source=cann_doc("ops-nn", "norm/add_rms_norm_dynamic_quant/docs/aclnnAddRmsNormDynamicQuantV2.md"),
    grade=Grade.DOCUMENTED,
)
def npu_add_rms_norm_dynamic_quant(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    *,
    smooth_scale1: Tensor | None = None,
    smooth_scale2: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: float = 1e-6,
    output_mask: list[bool] | None = None,
    y_dtype: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return ``(y1, y2, x, scale1, scale2)``; a result that was not asked for is empty."""
    op = "npu_add_rms_norm_dynamic_quant"
    if _dtype(op, "y_dtype", y_dtype) != torch.int8:
        raise limits.not_simulated(op, "y_dtype", y_dtype)
    x = x1 + x2
    values, _ = rms_norm_float(x, gamma, epsilon)
    if beta is not None:
        values = values + beta.float()
    wanted = output_mask or [True, smooth_scale1 is not None and smooth_scale2 is not None]
    results = []
    for want, smooth in zip(wanted, (smooth_scale1, smooth_scale2), strict=True):
        empty = torch.empty(0, dtype=torch.int8), torch.empty(0)
        results.append(per_token(values if smooth is None else values * smooth.float()) if want else empty)
    return results[0][0], results[1][0], x, results[0][1], results[1][1]
