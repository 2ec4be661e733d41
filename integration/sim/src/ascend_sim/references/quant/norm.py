# SPDX-License-Identifier: Apache-2.0
"""Root-mean-square normalisation followed by quantising; the normalised values stay float32 in between."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references.norm import rms_norm_float
from ascend_sim.references.quant.dtypes import INT4_NUMBERS, plain_dtype
from ascend_sim.references.quant.dynamic import per_token, target
from ascend_sim.references.quant.integers import pack_int4, saturate, saturate_int4
from ascend_sim.references.quant.microscale import quantise
from ascend_sim.references.quant.mx import checked
from ascend_sim.references.quant.static import scaled
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_meta


def _normalised(x: Tensor, gamma: Tensor, beta: Tensor | None, epsilon: float) -> tuple[Tensor, Tensor]:
    """The normalised values plus beta, and ``1 / rms``, float32. gamma and beta may have a leading 1."""
    row = gamma.reshape(-1) if gamma.numel() == x.shape[-1] else gamma
    values, rstd = rms_norm_float(x, row, epsilon)
    return (values if beta is None else values + beta.float().reshape(row.shape)), rstd


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
    dtype = plain_dtype("npu_add_rms_norm_quant", "dst_type", dst_type)
    x = x1 + x2
    values, _ = _normalised(x, gamma, beta, epsilon)
    first = saturate(scaled(values, scales1, zero_points1, div_mode), dtype)
    if scales2 is None:
        return first, torch.zeros_like(first), x
    return first, saturate(scaled(values, scales2, zero_points2, div_mode), dtype), x


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
    dtype, largest = target("npu_add_rms_norm_dynamic_quant", "y_dtype", y_dtype)
    x = x1 + x2
    values, _ = _normalised(x, gamma, beta, epsilon)
    wanted = output_mask or [True, smooth_scale1 is not None and smooth_scale2 is not None]
    results = []
    for want, smooth in zip(wanted, (smooth_scale1, smooth_scale2), strict=True):
        if want:
            results.append(per_token(values if smooth is None else values * smooth.float(), largest, dtype))
        else:
            results.append((torch.empty(0, dtype=dtype or torch.int32), torch.empty(0)))
    return results[0][0], results[1][0], x, results[0][1], results[1][1]


def _static(values: Tensor, scale: Tensor, offset: Tensor | None, divide: bool, op: str, number: int | None) -> Tensor:
    quotient = scaled(values, scale, offset, divide)
    if number in INT4_NUMBERS:
        return pack_int4(saturate_int4(quotient))
    return saturate(quotient, plain_dtype(op, "dst_dtype", number))


@reference("npu::npu_rms_norm_quant", source=op_plugin_test("test_npu_rms_norm_quant"), grade=Grade.GOLDEN)
def npu_rms_norm_quant(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    scale: Tensor,
    offset: Tensor,
    epsilon: float = 1e-6,
    *,
    dst_dtype: int | None = None,
) -> Tensor:
    """``round(norm / scale + offset)``, int8 unless ``dst_dtype`` says otherwise."""
    values, _ = _normalised(x, gamma, beta, epsilon)
    return _static(values, scale, offset, True, "npu_rms_norm_quant", dst_dtype)


@reference(
    "npu::npu_rms_norm_quant_v2",
    source=cann_doc("ops-nn", "norm/rms_norm_quant_v2/README.md") + "; " + wheel_meta("npu_rms_norm_quant_v2"),
    grade=Grade.DOCUMENTED,
)
def npu_rms_norm_quant_v2(
    x: Tensor,
    gamma: Tensor,
    scale: Tensor,
    *,
    offset: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: float = 1e-6,
    div_mode: bool = True,
    dst_dtype: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The quantised norm and ``1 / rms`` [..., 1], float32."""
    values, rstd = _normalised(x, gamma, beta, epsilon)
    return _static(values, scale, offset, div_mode, "npu_rms_norm_quant_v2", dst_dtype), rstd


_MX_NOTE = "whether the norm is rounded to x's dtype before it is quantised is not documented; it is not"


@reference(
    "npu::npu_rms_norm_dynamic_mx_quant",
    source=wheel_meta("npu_rms_norm_dynamic_mx_quant")
    + "; "
    + cann_doc("ops-nn", "quant/dynamic_mx_quant/docs/aclnnDynamicMxQuantV2.md"),
    grade=Grade.DOCUMENTED,
    note=_MX_NOTE,
)
def npu_rms_norm_dynamic_mx_quant(
    x: Tensor,
    gamma: Tensor,
    *,
    beta: Tensor | None = None,
    epsilon: float = 1e-6,
    scale_alg: int = 0,
    round_mode: str = "rint",
    dst_type: int = 296,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``(y, mxscale, rstd)``: the norm as MX elements in blocks of 32 of the last dimension."""
    kind, algorithm = checked("npu_rms_norm_dynamic_mx_quant", dst_type, round_mode, scale_alg)
    values, rstd = _normalised(x, gamma, beta, epsilon)
    y, scales = quantise(values, kind, algorithm=algorithm, rounding=round_mode)
    return y, scales, rstd


@reference(
    "npu::npu_add_rms_norm_dynamic_mx_quant",
    source=op_plugin_test("test_npu_add_rms_norm_dynamic_mx_quant")
    + "; "
    + cann_doc("ops-nn", "quant/dynamic_mx_quant/docs/aclnnDynamicMxQuantV2.md"),
    grade=Grade.DOCUMENTED,
    note=_MX_NOTE,
)
def npu_add_rms_norm_dynamic_mx_quant(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    *,
    beta: Tensor | None = None,
    epsilon: float = 1e-6,
    scale_alg: int = 0,
    round_mode: str = "rint",
    dst_type: int = 296,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ``(y, x, mxscale, rstd)`` of the sum ``x``, as :func:`npu_rms_norm_dynamic_mx_quant`."""
    x = x1 + x2
    y, scales, rstd = npu_rms_norm_dynamic_mx_quant(
        x, gamma, beta=beta, epsilon=epsilon, scale_alg=scale_alg, round_mode=round_mode, dst_type=dst_type
    )
    return y, x, scales, rstd
