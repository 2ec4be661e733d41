# SPDX-License-Identifier: Apache-2.0
"""One product ``x @ w`` with operands and scales in any of the vendor's formats."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.quant.integers import unpack_int4
from ascend_sim.references.quant.microscale import E1M2, E2M1, E4M3, E5M2, Element, decode_fp4, dequantise
from ascend_sim.references.quant.weight import scale_of

_EXACT = 1024
"""Products of int8 that float32 adds up exactly."""
_BLOCK = 128
_FP8 = {torch.float8_e5m2: E5M2, torch.float8_e4m3fn: E4M3}
_FP4_NUMBERS = {296: E2M1, 297: E1M2}
E8M0_NUMBER = 293


def integer_product(x: Tensor, w: Tensor) -> Tensor:
    """``x @ w`` of int8 matrices, exact, int32."""
    total = torch.zeros(*x.shape[:-1], w.shape[-1], dtype=torch.int32)
    for start in range(0, x.shape[-1], _EXACT):
        end = start + _EXACT
        total += (x[..., start:end].float() @ w[..., start:end, :].float()).int()
    return total


def float4(op: str, argument: str, number: int | None) -> Element | None:
    """The 4-bit float format of an argument ``…_dtype``; None if the tensor's own dtype counts."""
    if number is None or number in (1, 2, 23, 24, 291, 292):
        return None
    if number not in _FP4_NUMBERS:
        raise limits.not_simulated(op, argument, number)
    return _FP4_NUMBERS[number]


def elements(tensor: Tensor, kind: Element | None = None) -> Tensor:
    """Values of an operand: int8 of packed int4 (int32), float32 of packed float4, others as they are."""
    if kind is not None:
        return decode_fp4(tensor, kind)
    return unpack_int4(tensor) if tensor.dtype == torch.int32 else tensor


def is_e8m0(scale: Tensor | None) -> bool:
    """Whether scales are those of microscaling; uint8 is how torch_npu hands them over."""
    return scale is not None and scale.dtype in (torch.uint8, torch.float8_e8m0fnu)


def by_group(scale: Tensor, size: int) -> Tensor:
    """Rows of ``scale`` [G, N] repeated to ``size`` rows, one for each element of K."""
    return scale.repeat_interleave(-(-size // len(scale)), 0)[:size]


def expand_blocks(scale: Tensor, rows: int, columns: int, block: tuple[int, int]) -> Tensor:
    """One factor for each element from one for each block of ``block`` rows and columns."""
    tall = scale.repeat_interleave(block[0], 0)[:rows]
    return tall.repeat_interleave(block[1], 1)[:, :columns]


@dataclass(frozen=True, slots=True)
class Scales:
    """What turns a quantised product into its value.

    Args:
        weight: float32 [1], [N], [G, N] by group of K, or blocks [K / 128, N / 128]; E8M0 [K / 64, N, 2].
        token: float32 [M], or [M, K / 128] with blocks; E8M0 [M, K / 64, 2].
        bias: [N]; an integer bias is added before the scales, a float one after.
    """

    weight: Tensor | None = None
    token: Tensor | None = None
    bias: Tensor | None = None


def quantised_product(x: Tensor, w: Tensor, scales: Scales) -> Tensor:
    """float32 value of an int8 product x [M, K] and w [K, N]; int32 if it has no scales."""
    integer_bias = scales.bias is not None and not scales.bias.is_floating_point()
    weight = None if scales.weight is None else scale_of(scales.weight)
    if weight is not None and weight.dim() == 2 and len(weight) > 1:
        size = x.shape[-1] // len(weight)
        parts = (
            integer_product(x[..., i * size : (i + 1) * size], w[..., i * size : (i + 1) * size, :]).float() * weight[i]
            for i in range(len(weight))
        )
        values = torch.stack(list(parts)).sum(0)
    else:
        total = integer_product(x, w)
        if integer_bias:
            total = total + scales.bias
        if weight is None:
            return total
        values = total.float() * weight.reshape(-1)
    if scales.token is not None:
        values = values * scales.token.reshape(-1, 1)
    return values if scales.bias is None or integer_bias else values + scales.bias.float()


def float8_product(x: Tensor, w: Tensor, scales: Scales) -> Tensor:
    """float32 value of a product of float8 with float32 scales, by token and channel or by block."""
    k, n = w.shape
    values_x, values_w = x.float(), w.float()
    weight = None if scales.weight is None else scale_of(scales.weight)
    token = scales.token
    if weight is not None and weight.dim() == 2 and token is not None and token.dim() == 2 and token.shape[1] > 1:
        values_w = values_w * expand_blocks(weight, k, n, (_BLOCK, _BLOCK))
        high = _BLOCK if len(token) != len(x) else 1
        values = (values_x * expand_blocks(token, len(x), k, (high, _BLOCK))) @ values_w
    else:
        values = values_x @ values_w
        if weight is not None:
            values = values * weight.reshape(-1)
        if token is not None:
            values = values * token.reshape(-1, 1)
    return values if scales.bias is None else values + scales.bias.float()


def microscaled_product(
    x: Tensor, w: Tensor, scales: Scales, x_kind: Element | None = None, w_kind: Element | None = None
) -> Tensor:
    """float32 value of a product of microscaled operands; 4-bit ones need their format."""
    assert scales.weight is not None
    assert scales.token is not None
    left = dequantise(x, scales.token, x_kind or _FP8[x.dtype])
    right = dequantise(w, scales.weight, w_kind or _FP8[w.dtype], axis=0)
    values = left @ right
    return values if scales.bias is None else values + scales.bias.float()


def dequantised_weight(w: Tensor, scale: Tensor, offset: Tensor | None) -> Tensor:
    """``(w + offset) * scale`` in float32 of int8 w [K, N] (or floats); parameters [1], [N] or [G, N] by group of K."""
    values = w.float()
    grouped = scale.dim() == 2 and len(scale) > 1
    if offset is not None:
        values = values + (by_group(offset.float(), len(w)) if grouped else offset.float().reshape(-1))
    return values * (by_group(scale.float(), len(w)) if grouped else scale.float().reshape(-1))


def shifted_product(x: Tensor, w: Tensor, scale: Tensor, assist: Tensor | None, token: Tensor | None) -> Tensor:
    """``((x - 8) @ (w * scale) + assist) * token`` of int8 x and int4 w.

    The hardware splits x into two int4, of which the lower one lacks 8; ``assist`` makes up for that.
    """
    values = (x.float() - 8) @ dequantised_weight(w, scale_of(scale), None)
    if assist is not None:
        values = values + assist.float()
    return values if token is None else values * token.reshape(-1, 1)


def value_of(
    x: Tensor, w: Tensor, scales: Scales, x_kind: Element | None = None, w_kind: Element | None = None
) -> Tensor:
    """float32 (int32 for integers without scales) value of ``x @ w`` by the operands' formats."""
    if is_e8m0(scales.weight):
        return microscaled_product(x, w, scales, x_kind, w_kind)
    left, right = elements(x), elements(w)
    if left.dtype == torch.int8 and right.dtype == torch.int8:
        return quantised_product(left, right, scales)
    if left.dtype in _FP8:
        return float8_product(left, right, scales)
    values = left.float() @ right.float()
    return values if scales.bias is None else values + scales.bias.float()
