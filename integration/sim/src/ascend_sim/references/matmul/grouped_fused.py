# SPDX-License-Identifier: Apache-2.0
"""Grouped products followed by SwiGLU and quantising, by adding up tokens, or added to their results."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.matmul.groups import group_ranges
from ascend_sim.references.matmul.products import Scales, elements, float4, shifted_product, value_of
from ascend_sim.references.quant.dynamic import per_token
from ascend_sim.references.quant.microscale import Element, element, quantise
from ascend_sim.references.quant.swiglu import swiglu
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_doc
from ascend_sim.references.undefined import undefined

_SWIGLU_PAGE = cann_doc("ops-transformer", "gmm/grouped_matmul_swiglu_quant_v2/docs/aclnnGroupedMatmulSwigluQuantV2.md")


def _quantise_groups(
    op: str,
    x: Tensor,
    weight: Tensor,
    weight_scale: Tensor,
    x_scale: Tensor,
    ranges: list[tuple[int, int, int]],
    *,
    assist: Tensor | None = None,
    smooth: Tensor | None = None,
    x_kind: Element | None = None,
    w_kind: Element | None = None,
    target: Element | None = None,
) -> tuple[Tensor, Tensor]:
    parts = []
    for group, start, end in ranges:
        rows, token, w, scale = x[start:end], x_scale[start:end], weight[group], weight_scale[group]
        if rows.dtype == torch.int8 and w.dtype == torch.int32:
            help_ = None if assist is None else assist[group]
            values = shifted_product(rows, elements(w), scale, help_, token)
        else:
            values = value_of(rows, w, Scales(scale, token), x_kind, w_kind)
        values = swiglu(values)
        if smooth is not None:
            values = values * smooth[group]
        parts.append(quantise(values, target) if target else per_token(values))
    used = ranges[-1][2] if ranges else 0
    if not parts:
        raise limits.not_simulated(op, "group_list", "without rows")
    y, scales = (torch.cat([pair[i] for pair in parts]) for i in range(2))
    out, out_scale = undefined((len(x), *y.shape[1:]), y.dtype), undefined((len(x), *scales.shape[1:]), scales.dtype)
    out[:used], out_scale[:used] = y, scales
    return out, out_scale


@reference(
    "npu::npu_grouped_matmul_swiglu_quant",
    source=op_plugin_test("test_npu_grouped_matmul_swiglu_quant") + "; " + _SWIGLU_PAGE,
    grade=Grade.GOLDEN,
    note="rows beyond the groups and the third result are undefined",
)
def npu_grouped_matmul_swiglu_quant(
    x: Tensor,
    weight: Tensor,
    group_list: Tensor,
    weight_scale: Tensor,
    x_scale: Tensor,
    *,
    bias: Tensor | None = None,
    offset: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """int8 rows and scales of ``swiglu((x @ weight[g]) * x_scale * weight_scale[g])``, groups given by running sums."""
    op = "npu_grouped_matmul_swiglu_quant"
    if bias is not None or offset is not None:
        raise limits.not_simulated(op, "bias, offset", "given")
    ranges = group_ranges(op, group_list, 0, len(x))
    y, scale = _quantise_groups(op, x, weight, weight_scale, x_scale, ranges)
    return y, scale, undefined((), torch.float32)


@reference(
    "npu::npu_grouped_matmul_swiglu_quant_v2",
    source=f"{wheel_doc('npu_grouped_matmul_swiglu_quant_v2')}; {_SWIGLU_PAGE}",
    grade=Grade.DOCUMENTED,
    note="rows beyond the groups are undefined",
)
def npu_grouped_matmul_swiglu_quant_v2(
    x: Tensor,
    weight: list[Tensor],
    weight_scale: list[Tensor],
    x_scale: Tensor,
    group_list: Tensor,
    *,
    smooth_scale: Tensor | None = None,
    weight_assist_matrix: list[Tensor] | None = None,
    bias: Tensor | None = None,
    dequant_mode: int | None = 0,
    dequant_dtype: int | None = 6,
    quant_mode: int | None = 0,
    quant_dtype: int | None = 1,
    group_list_type: int | None = 0,
    tuning_config: list[int] | None = None,
    x_dtype: int | None = None,
    weight_dtype: int | None = None,
    weight_scale_dtype: int | None = None,
    x_scale_dtype: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The same for int8, int4 and microscaled operands; the result is int8 by token or (dequant_mode 2) microscaled."""
    op = "npu_grouped_matmul_swiglu_quant_v2"
    if len(weight) != 1 or bias is not None:
        raise limits.not_simulated(op, "weight, bias", "several weights or a bias")
    microscaled = dequant_mode == 2
    if not microscaled and (quant_mode or quant_dtype not in (0, 1)):
        raise limits.not_simulated(op, "quant_mode, quant_dtype", (quant_mode, quant_dtype))
    return _quantise_groups(
        op,
        x,
        weight[0],
        weight_scale[0],
        x_scale,
        group_ranges(op, group_list, group_list_type or 0, len(x)),
        assist=weight_assist_matrix[0] if weight_assist_matrix else None,
        smooth=smooth_scale,
        x_kind=float4(op, "x_dtype", x_dtype),
        w_kind=float4(op, "weight_dtype", weight_dtype),
        target=element(op, "quant_dtype", quant_dtype) if microscaled else None,
    )


@reference(
    "npu::npu_grouped_matmul_finalize_routing",
    source=op_plugin_test("test_npu_grouped_matmul_finalize_routing")
    + "; "
    + wheel_doc("npu_grouped_matmul_finalize_routing"),
    grade=Grade.GOLDEN,
)
def npu_grouped_matmul_finalize_routing(
    x: Tensor,
    w: Tensor,
    group_list: Tensor,
    *,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    offset: Tensor | None = None,
    pertoken_scale: Tensor | None = None,
    shared_input: Tensor | None = None,
    logit: Tensor | None = None,
    row_index: Tensor | None = None,
    dtype: torch.dtype | None = None,
    shared_input_weight: float | None = 1.0,
    shared_input_offset: int | None = 0,
    output_bs: int | None = 0,
    group_list_type: int | None = 1,
    tuning_config: list[int] | None = None,
    x_dtype: int | None = None,
    w_dtype: int | None = None,
    scale_dtype: int | None = None,
    pertoken_scale_dtype: int | None = None,
) -> Tensor:
    """Add ``logit[i] * (x[i] @ w[g])`` to row ``row_index[i]`` of a float32 result that has ``shared_input`` in it."""
    op = "npu_grouped_matmul_finalize_routing"
    if offset is not None or scale is None:
        raise limits.not_simulated(op, "offset, scale", "an offset, or no scale")
    if dtype not in (None, torch.float32):
        raise limits.refuse(op, "dtype", dtype, "float32")
    x_kind, w_kind = float4(op, "x_dtype", x_dtype), float4(op, "w_dtype", w_dtype)
    out: Tensor | None = None
    for group, start, end in group_ranges(op, group_list, 1 if group_list_type is None else group_list_type, len(x)):
        rows, token = x[start:end], None if pertoken_scale is None else pertoken_scale[start:end]
        help_ = None if bias is None else bias[group]
        if rows.dtype == torch.int8 and w.dtype == torch.int32:
            values = shifted_product(rows, elements(w[group]), scale[group], help_, token)
        else:
            values = value_of(rows, w[group], Scales(scale[group], token, help_), x_kind, w_kind)
        if logit is not None:
            values = values * logit[start:end, None]
        if out is None:
            out = torch.zeros(output_bs or len(x), values.shape[1])
            if shared_input is not None:
                weight = 1.0 if shared_input_weight is None else shared_input_weight
                first = shared_input_offset or 0
                out[first : first + len(shared_input)] = shared_input.float() * weight
        index = torch.arange(start, end) if row_index is None else row_index[start:end].long()
        out.index_add_(0, index, values)
    if out is None:
        raise limits.not_simulated(op, "group_list", "without rows")
    return out


_ADD_SOURCE = wheel_doc("npu_grouped_matmul_add")


@reference("npu::npu_grouped_matmul_add_", source=_ADD_SOURCE, grade=Grade.DOCUMENTED)
def npu_grouped_matmul_add_(
    input: Tensor,
    x: Tensor,
    weight: Tensor,
    group_list: Tensor,
    *,
    transpose_x: bool = True,
    transpose_weight: bool = False,
    group_type: int = 2,
    group_list_type: int | None = 0,
) -> Tensor:
    """``input[g] += x[rows].T @ weight[rows]`` in float32, for the rows of each group."""
    if not transpose_x or transpose_weight or group_type != 2:
        raise limits.refuse(
            "npu_grouped_matmul_add_",
            "transpose_x, transpose_weight, group_type",
            (transpose_x, transpose_weight, group_type),
            "True, False and 2",
        )
    for group, start, end in group_ranges("npu_grouped_matmul_add_", group_list, group_list_type or 0, len(x)):
        input[group].addmm_(x[start:end].float().t(), weight[start:end].float())
    return input


@reference("npu::npu_grouped_matmul_add", source=_ADD_SOURCE, grade=Grade.DOCUMENTED)
def npu_grouped_matmul_add(
    input: Tensor,
    x: Tensor,
    weight: Tensor,
    group_list: Tensor,
    *,
    transpose_x: bool = True,
    transpose_weight: bool = False,
    group_type: int = 2,
    group_list_type: int | None = 0,
) -> Tensor:
    """:func:`npu_grouped_matmul_add_` on a copy of ``input``."""
    return npu_grouped_matmul_add_(
        input.clone(),
        x,
        weight,
        group_list,
        transpose_x=transpose_x,
        transpose_weight=transpose_weight,
        group_type=group_type,
        group_list_type=group_list_type,
    )
