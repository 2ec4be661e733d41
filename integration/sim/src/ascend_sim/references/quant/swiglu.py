# SPDX-License-Identifier: Apache-2.0
"""SwiGLU followed by quantising, also of integer products that still lack their scales."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.quant.integers import saturate
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test
from ascend_sim.references.undefined import poison, undefined


def swiglu(values: Tensor) -> Tensor:
    """``silu(left) * right`` of the halves of float32 ``values``."""
    left, right = values.chunk(2, -1)
    return torch.nn.functional.silu(left) * right


def _by_row(parameter: Tensor | None, group: Tensor, groups: int) -> Tensor | float | None:
    """A parameter [G, N] or [G] for each row's group, or one row of it for all."""
    if parameter is None:
        return None
    values = parameter.float()
    if values.dim() == 1 and len(values) != groups:
        return values
    chosen = values[group] if len(values) > 1 else values[:1]
    return chosen if values.dim() > 1 else chosen.unsqueeze(-1)


@reference(
    "npu::npu_swiglu_quant",
    source=op_plugin_test("test_npu_swiglu_quant")
    + "; "
    + cann_doc("ops-nn", "quant/swi_glu_quant/docs/aclnnSwiGluQuantV2.md"),
    grade=Grade.GOLDEN,
    note="the scale is 127 / max, the inverse of other operators', as in the vendor's test and page; rows beyond the "
    "groups are not smoothed, as in the test; without quantisation by token the scale is undefined",
)
def npu_swiglu_quant(
    x: Tensor,
    *,
    smooth_scales: Tensor | None = None,
    offsets: Tensor | None = None,
    group_index: Tensor | None = None,
    activate_left: bool = False,
    quant_mode: int = 0,
    group_list_type: int = 0,
    dst_type: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """SwiGLU of x [..., 2N] times smoothing rows (plus offsets if static), int8, and scales by token if dynamic."""
    op = "npu_swiglu_quant"
    if dst_type not in (None, torch.int8):
        raise limits.not_simulated(op, "dst_type", dst_type)
    rows = x.float().flatten(0, -2)
    left, right = rows.chunk(2, -1)
    values = swiglu(rows) if activate_left else swiglu(torch.cat((right, left), -1))
    groups = 1 if group_index is None else len(group_index)
    if group_index is None:
        group, count = torch.zeros(len(rows), dtype=torch.long), len(rows)
    else:
        ends = group_index.long() if group_list_type == 0 else group_index.long().cumsum(0)
        count = int(ends[-1])
        group = torch.searchsorted(ends, torch.arange(count), right=True)
    used = values[:count]
    if (smooth := _by_row(smooth_scales, group[:count], groups)) is not None:
        used *= smooth
    if quant_mode == 0 and (shift := _by_row(offsets, group[:count], groups)) is not None:
        used += shift
    shape = x.shape[:-1]
    if quant_mode == 0:
        return saturate(values, torch.int8).view(*shape, -1), undefined(shape, torch.float32)
    scale = 127 / values.abs().amax(-1)
    y = saturate(torch.where(scale.isinf().unsqueeze(-1), 0.0, values * scale.unsqueeze(-1)), torch.int8)
    return y.view(*shape, -1), scale.view(shape)


def _dequantised(
    x: Tensor, weight: Tensor | None, activation: Tensor | None, bias: Tensor | None, group: Tensor, groups: int
) -> Tensor:
    values = x
    if bias is not None and not bias.is_floating_point():
        values = values + (bias[group] if bias.dim() > 1 else bias)
    values = values.float()
    if weight is not None:
        rows = weight.reshape(-1, values.shape[-1]).float()
        values = values * (rows[group] if len(rows) > 1 else rows)
    if activation is not None:
        values = values * activation.reshape(-1, 1)[: len(values)].float()
    if bias is not None and bias.is_floating_point():
        values = values + (bias[group] if bias.dim() > 1 else bias).float()
    return values


def _activate(values: Tensor, left: bool, mode: int, limit: float, alpha: float, shift: float) -> Tensor:
    if mode == 1:
        gate, up = values[..., ::2], values[..., 1::2]
    else:
        gate, up = values.chunk(2, -1) if left else values.chunk(2, -1)[::-1]
    if mode == 0:
        return torch.nn.functional.silu(gate) * up
    if mode == 3:
        return torch.nn.functional.silu(gate).clamp(max=limit) * up.clamp(-limit, limit)
    gate = gate.clamp(max=limit)
    return gate * torch.sigmoid(alpha * gate) * (up.clamp(-limit, limit) + shift)


@reference(
    "npu::npu_dequant_swiglu_quant",
    source=op_plugin_test("test_npu_dequant_swiglu_quant")
    + "; "
    + cann_doc("ops-nn", "quant/dequant_swiglu_quant/docs/aclnnDequantSwigluQuantV2.md")
    + "; quant/dequant_swiglu_quant/tests/assets/golden.py",
    grade=Grade.GOLDEN,
    note="a row of zeros has scale 1; rows beyond the groups and the scale of static quantisation are undefined",
)
def npu_dequant_swiglu_quant(
    x: Tensor,
    *,
    weight_scale: Tensor | None = None,
    activation_scale: Tensor | None = None,
    bias: Tensor | None = None,
    quant_scale: Tensor | None = None,
    quant_offset: Tensor | None = None,
    group_index: Tensor | None = None,
    activate_left: bool = False,
    quant_mode: int = 0,
    dst_type: int | None = None,
    round_mode: int | None = None,
    activate_dim: int | None = None,
    swiglu_mode: int = 0,
    clamp_limit: float = 7.0,
    glu_alpha: float = 1.702,
    glu_bias: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Dequantise x [..., 2H], apply SwiGLU and quantise to int8 [..., H] with scales by row if dynamic.

    Args:
        weight_scale, bias: [2H] or [G, 2H]; an integer bias is added before the scales, a float one after.
        activation_scale: One a row.
        quant_scale: Smoothing factors (dynamic) or divisors (static), [H], [G, H] or [G]; static adds quant_offset.
        group_index: Rows of each group.
        swiglu_mode: 0 silu; 1 interleaved and 2 halves, both clamped with alpha and bias; 3 silu and clamps.
    """
    op = "npu_dequant_swiglu_quant"
    for name, value, allowed in (
        ("dst_type", dst_type, (None, 1)),
        ("round_mode", round_mode, (None, 0)),
        ("activate_dim", activate_dim, (None, -1, x.dim() - 1)),
    ):
        if value not in allowed:
            raise limits.not_simulated(op, name, value)
    if x.dtype == torch.int32 and weight_scale is None:
        raise limits.refuse(op, "weight_scale", None, "a tensor for x of int32")
    if x.dtype != torch.int32 and not (weight_scale is activation_scale is bias is None):
        raise limits.refuse(op, "weight_scale, activation_scale, bias", "given", "None for x of a floating dtype")
    if swiglu_mode == 1 and not activate_left:
        raise limits.refuse(op, "activate_left", activate_left, "True with swiglu_mode 1")
    rows = x.flatten(0, -2)
    counts = torch.tensor([len(rows)]) if group_index is None else group_index.long()
    group = torch.arange(len(counts)).repeat_interleave(counts)
    used, groups = rows[: len(group)], len(counts)
    values = _dequantised(used, weight_scale, activation_scale, bias, group, groups)
    values = _activate(values, activate_left, swiglu_mode, clamp_limit, glu_alpha, glu_bias)
    factor = _by_row(quant_scale, group, groups)
    y = poison(torch.empty(len(rows), values.shape[-1], dtype=torch.int8))
    scale = undefined((len(rows),), torch.float32)
    if quant_mode == 0:
        shift = _by_row(quant_offset, group, groups)
        divided = values if factor is None else values / factor
        y[: len(group)] = saturate(divided if shift is None else divided + shift, torch.int8)
    else:
        smoothed = values if factor is None else values * factor
        largest = smoothed.abs().amax(-1)
        steps = torch.where(largest > 0, largest / 127, 1.0)
        y[: len(group)] = saturate(smoothed / steps.unsqueeze(-1), torch.int8)
        scale[: len(group)] = steps
    return y.view(*x.shape[:-1], -1), scale.view(x.shape[:-1])
