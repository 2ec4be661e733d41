# SPDX-License-Identifier: Apache-2.0
"""Quantising with scales taken from the values: by token, by channel, or one for the whole tensor."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.quant.dtypes import INT4_LARGEST, INT4_NUMBERS, LARGEST, plain_dtype
from ascend_sim.references.quant.integers import pack_int4, saturate, saturate_int4
from ascend_sim.references.quant.static import group_rows
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_doc

_MODES = {"pertoken": -1, "perchannel": -2, "pertensor": None}
_PAGE = cann_doc("ops-nn", "quant/dynamic_quant/docs/aclnnDynamicQuantV4.md")


def per_token(values: Tensor, largest: float = 127.0, dtype: torch.dtype | None = torch.int8) -> tuple[Tensor, Tensor]:
    """Values and one scale a row, ``max(abs(row)) / largest``; float32 in and scales out. Zeros give zeros.

    With ``dtype`` None the values are int4, packed.
    """
    scale = values.abs().amax(-1) / largest
    quotient = values / scale.masked_fill(scale == 0, 1.0).unsqueeze(-1)
    return _store(quotient, dtype), scale


def _store(values: Tensor, dtype: torch.dtype | None) -> Tensor:
    return pack_int4(saturate_int4(values)) if dtype is None else saturate(values, dtype)


def target(op: str, argument: str, number: int | None) -> tuple[torch.dtype | None, float]:
    """dtype (None for int4) and largest value of a result by number."""
    if number in INT4_NUMBERS:
        return None, INT4_LARGEST
    dtype = plain_dtype(op, argument, number)
    if dtype not in LARGEST:
        raise limits.not_simulated(op, argument, number)
    return dtype, LARGEST[dtype]


def _smooth(op: str, input: Tensor, smooth: Tensor | None, group_index: Tensor | None, mode: str) -> Tensor:
    """``input`` times its smoothing row: one for all, or one a group, with ``group_index`` the groups' last rows."""
    values = input.float()
    if mode not in _MODES:
        raise limits.refuse(op, "quant_mode", mode, ", ".join(_MODES))
    if smooth is None:
        return values
    if mode == "perchannel":
        return values * smooth.float().unsqueeze(-1)
    if group_index is None:
        return values * smooth.float()
    rows = values.numel() // values.shape[-1]
    return values * smooth.float()[group_rows(op, group_index, rows)].view_as(values)


def _dimensions(values: Tensor, mode: str) -> list[int]:
    dimension = _MODES[mode]
    return list(range(values.dim())) if dimension is None else [dimension]


def _drop(scale: Tensor, mode: str) -> Tensor:
    """A scale with its reduced dimensions kept, in the shape the operator returns."""
    dimension = _MODES[mode]
    return scale.reshape(1) if dimension is None else scale.squeeze(dimension)


@reference("npu::npu_dynamic_quant", source=f"{wheel_doc('npu_dynamic_quant')}; {_PAGE}", grade=Grade.DOCUMENTED)
def npu_dynamic_quant(
    input: Tensor,
    *,
    smooth_scales: Tensor | None = None,
    group_index: Tensor | None = None,
    dst_type: int | None = None,
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """int8, float8 or packed int4 values and float32 scales ``max(abs) / largest`` over rows, columns or everything."""
    op = "npu_dynamic_quant"
    dtype, largest = target(op, "dst_type", dst_type)
    if dtype == torch.int8 and quant_mode == "pertoken" and smooth_scales is None:
        values, scale = torch.ops.ascend_sim.quantize(input.contiguous())  # the same in one pass
        return values, scale
    values = _smooth(op, input, smooth_scales, group_index, quant_mode)
    scale = values.abs().amax(_dimensions(values, quant_mode), keepdim=True) / largest
    return _store(values / scale.masked_fill(scale == 0, 1.0), dtype), _drop(scale, quant_mode)


@reference(
    "npu::npu_dynamic_quant_asymmetric",
    source=f"{wheel_doc('npu_dynamic_quant_asymmetric')}; {_PAGE}",
    grade=Grade.DOCUMENTED,
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
    """int8 or packed int4 with ``scale = (max - min) / steps`` and ``offset = largest - max / scale``."""
    op = "npu_dynamic_quant_asymmetric"
    dtype, largest = target(op, "dst_type", dst_type)
    if dtype not in (None, torch.int8):
        raise limits.not_simulated(op, "dst_type", dst_type)
    values = _smooth(op, input, smooth_scales, group_index, quant_mode)
    dimensions = _dimensions(values, quant_mode)
    high = values.amax(dimensions, keepdim=True)
    scale = (high - values.amin(dimensions, keepdim=True)) / (2 * largest + 1)
    offset = largest - high / scale
    return _store(values / scale + offset, dtype), _drop(scale, quant_mode), _drop(offset, quant_mode)
