# SPDX-License-Identifier: Apache-2.0
"""Products of groups of rows with a weight each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.matmul.groups import group_ranges
from ascend_sim.references.matmul.products import (
    Scales,
    dequantised_weight,
    elements,
    float4,
    shifted_product,
    value_of,
)
from ascend_sim.references.quant.dtypes import plain_dtype
from ascend_sim.references.quant.integers import saturate
from ascend_sim.references.quant.microscale import Element
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test
from ascend_sim.references.undefined import undefined

Tensors = Sequence[Tensor] | None
_ACTIVATIONS: dict[int, Callable[[Tensor], Tensor]] = {
    1: F.relu,
    2: partial(F.gelu, approximate="tanh"),
    4: lambda values: values * torch.sigmoid(1.702 * values),
    5: F.silu,
}


def pick(tensors: Tensors, group: int, groups: int) -> Tensor | None:
    """A group's parameter: an element of a list, or a row of its only tensor."""
    if not tensors:
        return None
    return tensors[0][group] if len(tensors) == 1 and groups > 1 else tensors[group]


@dataclass(frozen=True, slots=True)
class _Weights:
    """The weights of a call and what belongs to them."""

    weight: Sequence[Tensor]
    bias: Tensors
    scale: Tensors
    antiquant_scale: Tensors
    antiquant_offset: Tensors
    x_kind: Element | None
    w_kind: Element | None
    activation: int
    dtype: torch.dtype

    @property
    def groups(self) -> int:
        first = self.weight[0]
        return len(first) if len(self.weight) == 1 and first.dim() == 3 else len(self.weight)

    def product(self, x: Tensor, group: int, token: Tensor | None) -> Tensor:
        """Rows ``x`` [M, K] times a group's weight, in the result's dtype."""
        chosen = self.weight[0][group] if self.weight[0].dim() == 3 else self.weight[group]
        bias, scale = (pick(tensors, group, self.groups) for tensors in (self.bias, self.scale))
        antiquant = pick(self.antiquant_scale, group, self.groups)
        if x.dtype == torch.int8 and chosen.dtype == torch.int32:
            assert scale is not None
            return self._result(shifted_product(x, elements(chosen), scale, bias, token))
        if antiquant is not None:
            offset = pick(self.antiquant_offset, group, self.groups)
            values = x.float() @ dequantised_weight(elements(chosen), antiquant, offset)
            return self._result(values if bias is None else values + bias.float())
        plain = bias is None and scale is None and not self.activation and x.dtype == chosen.dtype == self.dtype
        if plain and x.is_floating_point() and x.dtype.itemsize > 1:
            return x @ chosen
        return self._result(value_of(x, chosen, Scales(scale, token, bias), self.x_kind, self.w_kind))

    def _result(self, values: Tensor) -> Tensor:
        activated = _ACTIVATIONS[self.activation](values) if self.activation else values
        return activated.to(self.dtype) if self.dtype.is_floating_point else saturate(activated.float(), self.dtype)


def _by_rows(weights: _Weights, x: Tensor, ranges: list[tuple[int, int, int]], token: Tensor | None) -> Tensor:
    out: Tensor | None = None
    for group, start, end in ranges:
        part = weights.product(x[start:end], group, None if token is None else token[start:end])
        if out is None:
            out = undefined((len(x), part.shape[1]), weights.dtype)
        out[start:end] = part
    return undefined((len(x), _columns(weights)), weights.dtype) if out is None else out


def _columns(weights: _Weights) -> int:
    first = weights.weight[0]
    return int(first.shape[-1]) * (8 if first.dtype == torch.int32 else 1)


def _by_depth(op: str, weights: _Weights, x: Tensor, ranges: list[tuple[int, int, int]], groups: int) -> Tensor:
    """[groups, M, N]: the product of each group's columns of x and rows of the weight; zeros for a group without."""
    weight = weights.weight[0]
    if weight.dim() != 2 or weights.scale or not x.is_floating_point() or weights.bias:
        raise limits.not_simulated(op, "group_type", "2 with quantised operands, bias or a weight of 3 dimensions")
    out = torch.zeros(groups, len(x), weight.shape[1], dtype=weights.dtype)
    for group, start, end in ranges:
        out[group] = (x[:, start:end].float() @ weight[start:end].float()).to(weights.dtype)
    return out


def _grouped(
    op: str, x: Sequence[Tensor], weights: _Weights, group_list: Any, split: int, group_type: int, kind: int, token: Any
) -> list[Tensor]:
    if group_type == 2:
        depth = x[0].shape[1]
        return [_by_depth(op, weights, x[0], group_ranges(op, group_list, kind, depth), len(group_list))]
    if len(x) > 1 or group_list is None:
        tokens = token or [None] * len(x)
        flat = [item.reshape(-1, item.shape[-1]) for item in x]
        parts = [weights.product(item, i, tokens[i]) for i, item in enumerate(flat)]
        if split in (2, 3):
            return [torch.cat(parts)]
        return [part.view(*item.shape[:-1], -1) for part, item in zip(parts, x, strict=True)]
    ranges = group_ranges(op, group_list, kind, len(x[0]))
    out = _by_rows(weights, x[0], ranges, token[0] if token else None)
    if split != 1:
        return [out]
    bounds = {group: (start, end) for group, start, end in ranges}
    return [out[slice(*bounds.get(i, (0, 0)))].clone() for i in range(len(group_list))]


_SOURCE = (
    op_plugin_test("test_npu_grouped_matmul")
    + "; "
    + cann_doc("ops-transformer", "gmm/grouped_matmul/docs/aclnnGroupedMatmulV5.md")
)
_NOTE = "rows beyond the groups are undefined; not simulated: quantised activations, offsets, hifloat8"


@reference("npu::npu_grouped_matmul", source=_SOURCE, grade=Grade.DOCUMENTED, note=_NOTE)
def npu_grouped_matmul(
    x: list[Tensor],
    weight: list[Tensor],
    *,
    bias: list[Tensor] | None = None,
    scale: list[Tensor] | None = None,
    offset: list[Tensor] | None = None,
    antiquant_scale: list[Tensor] | None = None,
    antiquant_offset: list[Tensor] | None = None,
    per_token_scale: list[Tensor] | None = None,
    group_list: Tensor | None = None,
    activation_input: list[Tensor] | None = None,
    activation_quant_scale: list[Tensor] | None = None,
    activation_quant_offset: list[Tensor] | None = None,
    split_item: int | None = 0,
    group_type: int | None = None,
    group_list_type: int | None = 0,
    act_type: int | None = 0,
    tuning_config: list[int] | None = None,
    output_dtype: int | None = None,
    x_dtype: int | None = None,
    weight_dtype: int | None = None,
    scale_dtype: int | None = None,
    per_token_scale_dtype: int | None = None,
) -> list[Tensor]:
    """Product of each group's rows of x with its weight [K, N], quantised or not, then an activation.

    Args:
        x, weight: Several tensors, or one whose rows (``group_type`` 0) or columns (2) ``group_list`` divides, with
            weights [E, K, N] or a list.
        split_item: 0 one result for each x, 1 one for each group, 2 or 3 a single one.
        act_type: 1 relu, 2 gelu (tanh), 4 fast gelu, 5 silu.
    """
    op = "npu_grouped_matmul"
    for name, value in (
        ("offset", offset),
        ("activation_input", activation_input),
        ("activation_quant_scale", activation_quant_scale),
        ("activation_quant_offset", activation_quant_offset),
    ):
        if value:
            raise limits.not_simulated(op, name, "given")
    if act_type and act_type not in _ACTIVATIONS:
        raise limits.not_simulated(op, "act_type", act_type)
    weights = _Weights(
        weight,
        bias,
        scale,
        antiquant_scale,
        antiquant_offset,
        float4(op, "x_dtype", x_dtype),
        float4(op, "weight_dtype", weight_dtype),
        act_type or 0,
        plain_dtype(op, "output_dtype", output_dtype, x[0].dtype) if output_dtype else x[0].dtype,
    )
    return _grouped(op, x, weights, group_list, split_item or 0, group_type or 0, group_list_type or 0, per_token_scale)


@reference("npu::npu_grouped_matmul.List", source=_SOURCE, grade=Grade.DOCUMENTED, note=_NOTE)
def npu_grouped_matmul_list(
    x: list[Tensor],
    weight: list[Tensor],
    *,
    bias: list[Tensor] | None = None,
    scale: list[Tensor] | None = None,
    offset: list[Tensor] | None = None,
    antiquant_scale: list[Tensor] | None = None,
    antiquant_offset: list[Tensor] | None = None,
    per_token_scale: list[Tensor] | None = None,
    group_list: list[int] | None = None,
    activation_input: list[Tensor] | None = None,
    activation_quant_scale: list[Tensor] | None = None,
    activation_quant_offset: list[Tensor] | None = None,
    split_item: int | None = 0,
    group_type: int | None = None,
    group_list_type: int | None = 0,
    act_type: int | None = 0,
    output_dtype: torch.dtype | None = None,
) -> list[Tensor]:
    """:func:`npu_grouped_matmul` with the groups' last rows (``group_list``) in host memory."""
    if offset or activation_input or activation_quant_scale or activation_quant_offset or act_type:
        raise limits.not_simulated("npu_grouped_matmul", "offset, activation…, act_type", "given")
    dtype = output_dtype or x[0].dtype
    weights = _Weights(weight, bias, scale, antiquant_scale, antiquant_offset, None, None, 0, dtype)
    kind = group_list_type or 0
    return _grouped(
        "npu_grouped_matmul", x, weights, group_list, split_item or 0, group_type or 0, kind, per_token_scale
    )
