# SPDX-License-Identifier: Apache-2.0
"""The operators that quantise to MXFP8 and MXFP4, and the one that goes back (Ascend 950)."""

from __future__ import annotations

from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.quant.dtypes import float_dtype
from ascend_sim.references.quant.microscale import E2M1, ROUNDINGS, Element, dequantise, element, quantise
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_doc

_PAGE = cann_doc("ops-nn", "quant/dynamic_mx_quant/docs/aclnnDynamicMxQuantV2.md")


def checked(op: str, number: int, rounding: str, algorithm: int | None, divisor: float = 0.0) -> tuple[Element, int]:
    """The element format of a call and its scale algorithm, after checking them against each other."""
    kind = element(op, "dst_type", number)
    allowed_roundings = ("rint",) if kind.dtype else ROUNDINGS
    if rounding not in allowed_roundings:
        raise limits.refuse(op, "round_mode", rounding, ", ".join(allowed_roundings))
    allowed = (0, 1) if kind.dtype else (0, 2) if kind is E2M1 else (0,)
    chosen = algorithm or 0
    if chosen not in allowed:
        raise limits.refuse(op, "scale_alg", chosen, f"{allowed} for dst_type {number}")
    if chosen == 2 and divisor in (0.0, 6.0, 7.0):
        raise limits.not_simulated(op, "scale_alg, dst_type_max", (chosen, divisor))
    return kind, chosen


@reference(
    "npu::npu_dynamic_mx_quant",
    source=f"{wheel_doc('npu_dynamic_mx_quant')}; {_PAGE}",
    grade=Grade.GOLDEN,
    note="scale_alg 2 with dst_type_max 0, 6 or 7 is not simulated: the page does not say which mantissas round up; "
    "floor rounds towards minus infinity",
)
def npu_dynamic_mx_quant(
    input: Tensor,
    *,
    axis: int = -1,
    round_mode: str = "rint",
    dst_type: int = 296,
    block_size: int = 32,
    scale_alg: int | None = 0,
    dst_type_max: float = 0.0,
    max_low_bound: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Elements (float8, or float4 packed two to a uint8) and E8M0 scales, uint8 in pairs of blocks along ``axis``."""
    op = "npu_dynamic_mx_quant"
    kind, algorithm = checked(op, dst_type, round_mode, scale_alg, dst_type_max)
    if block_size % 32 or not 0 < block_size <= 1024 or (algorithm == 2 and block_size != 32):
        raise limits.refuse(op, "block_size", block_size, "multiples of 32 up to 1024 (32 with scale_alg 2)")
    if kind.dtype is None and input.shape[-1] % 2:
        raise limits.refuse(op, "input.shape[-1]", input.shape[-1], "even sizes for float4")
    if max_low_bound and algorithm != 1:
        raise limits.refuse(op, "max_low_bound", max_low_bound, "0 unless scale_alg is 1")
    return quantise(
        input.float(),
        kind,
        axis=axis,
        block=block_size,
        algorithm=algorithm,
        rounding=round_mode,
        divisor=dst_type_max,
        bound=max_low_bound,
    )


@reference(
    "npu::npu_dynamic_mx_quant_with_dual_axis",
    source=wheel_doc("npu_dynamic_mx_quant_with_dual_axis"),
    grade=Grade.DOCUMENTED,
)
def npu_dynamic_mx_quant_with_dual_axis(
    input: Tensor,
    *,
    round_mode: str = "rint",
    dst_type: int = 296,
    scale_alg: int = 0,
    dst_type_max: float | None = 0.0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """:func:`npu_dynamic_mx_quant` along the last axis, and along the last but one."""
    op, divisor = "npu_dynamic_mx_quant_with_dual_axis", dst_type_max or 0.0
    kind, algorithm = checked(op, dst_type, round_mode, scale_alg, divisor)
    values = input.float()
    first, second = (
        quantise(values, kind, axis=axis, algorithm=algorithm, rounding=round_mode, divisor=divisor)
        for axis in (-1, -2)
    )
    return *first, *second


@reference(
    "npu::npu_anti_mx_quant",
    source=cann_doc("ops-nn", "quant/anti_mx_quant/docs/aclnnAntiMxQuant.md"),
    grade=Grade.DOCUMENTED,
)
def npu_anti_mx_quant(
    x: Tensor, mxscale: Tensor, *, axis: int | None = -1, dst_type: int | None = 15, src_type: int | None = 292
) -> Tensor:
    """Elements times their block's scale, in bfloat16, float16 or float32."""
    op = "npu_anti_mx_quant"
    kind = element(op, "src_type", src_type)
    target = float_dtype(op, "dst_type", 15 if dst_type is None else dst_type)
    return dequantise(x, mxscale, kind, -1 if axis is None else axis).to(target)
