# SPDX-License-Identifier: Apache-2.0
"""Preparing weights and their scales for the quantised products."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.quant.integers import pack_int4
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_doc

_MARK = 1 << 46


@reference(
    "npu::npu_convert_weight_to_int4pack", source=wheel_doc("npu_convert_weight_to_int4pack"), grade=Grade.DOCUMENTED
)
def npu_convert_weight_to_int4pack(weight: Tensor, inner_k_tiles: int = 0) -> Tensor:
    """int32 values in [-8, 7] packed eight to an int32 along the last dimension, the first in the lowest bits."""
    op = "npu_convert_weight_to_int4pack"
    if weight.dim() != 2 or weight.shape[-1] % 8:
        raise limits.refuse(op, "weight.shape", list(weight.shape), "two dimensions, the last a multiple of 8")
    low, high = weight.aminmax()
    if int(low) < -8 or int(high) > 7:
        raise limits.refuse(op, "weight", f"values from {int(low)} to {int(high)}", "-8 to 7")
    return pack_int4(weight)


@reference(
    "npu::npu_trans_quant_param",
    source=op_plugin_test("test_npu_trans_quant_param")
    + "; "
    + cann_doc("ops-nn", "quant/trans_quant_param_v2/docs/aclnnTransQuantParamV3.md"),
    grade=Grade.GOLDEN,
)
def npu_trans_quant_param(scale: Tensor, offset: Tensor | None = None, round_mode: int | None = 0) -> Tensor:
    """A float32 scale, cut (or with ``round_mode`` 1 rounded) to 19 bits, and a 9-bit offset at bit 37; int64."""
    bits = scale.contiguous().view(torch.int32).long() & 0xFFFFFFFF
    if round_mode:
        bits = bits + 0xFFF + ((bits >> 13) & 1)
    out = (bits & 0xFFFFE000) | _MARK
    if offset is None:
        return out
    step = offset.float().round().clamp(-256, 255).long() & 0x1FF
    return out | (step << 37)


def scale_of(param: Tensor) -> Tensor:
    """The float32 scale of a dequantisation parameter: float as it is, or packed by :func:`npu_trans_quant_param`."""
    if param.dtype not in (torch.int64, torch.uint64):
        return param.float()
    return param.view(torch.int64).to(torch.int32).view(torch.float32)


def offset_of(param: Tensor) -> Tensor:
    """The offset packed into a parameter of :func:`npu_trans_quant_param`, float32."""
    step = (param.view(torch.int64) >> 37) & 0x1FF
    return (step - 2 * (step & 0x100)).float()
