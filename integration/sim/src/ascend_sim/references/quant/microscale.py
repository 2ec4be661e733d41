# SPDX-License-Identifier: Apache-2.0
"""Microscaling (MX): blocks along an axis share a scale that is a power of two, stored as its exponent plus 127 (E8M0).

Scales are laid out in pairs: dimension ``axis`` counts pairs of blocks and a new last dimension of 2 the block in a
pair. FP4 elements are packed two to a byte along the last dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.quant.integers import pack_nibbles, unpack_nibbles

ROUNDINGS = ("rint", "floor", "round")
"""To nearest with ties to even, towards minus infinity, to nearest with ties away from zero."""


@dataclass(frozen=True, slots=True)
class Element:
    """An element format.

    Args:
        largest: Its largest value.
        exponent: The exponent of that value.
        dtype: torch's dtype, or None for the 4-bit formats.
        values: The 4-bit formats' non-negative values in order of their codes.
    """

    largest: float
    exponent: int
    dtype: torch.dtype | None = None
    values: tuple[float, ...] = ()


E5M2 = Element(57344.0, 15, torch.float8_e5m2)
E4M3 = Element(448.0, 8, torch.float8_e4m3fn)
E2M1 = Element(6.0, 2, values=(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0))
E1M2 = Element(1.75, 0, values=(0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75))
_NUMBERS = {23: E5M2, 291: E5M2, 24: E4M3, 292: E4M3, 296: E2M1, 297: E1M2}


def element(op: str, argument: str, number: int | None) -> Element:
    """The format of a number of torch_npu."""
    if number not in _NUMBERS:
        raise limits.not_simulated(op, argument, number)
    return _NUMBERS[number]


def _scale_codes(largest: Tensor, kind: Element, algorithm: int, divisor: float) -> Tensor:
    """E8M0 codes, int32, of blocks with these largest magnitudes."""
    if algorithm == 0:
        _, exponent = torch.frexp(largest)
        codes = (exponent - 1 - kind.exponent + 127).clamp_(min=0)
        codes = codes.masked_fill(largest == 0, 0)
        return codes.masked_fill(~largest.isfinite() | (codes > 254), 255)
    bits = (largest / divisor).view(torch.int32)
    exponent, mantissa = bits >> 23, bits & 0x7FFFFF
    up = ((exponent > 0) & (exponent < 254) & (mantissa > 0)) | ((exponent == 0) & (mantissa > 0x400000))
    return exponent + up.int()


def encode_fp4(values: Tensor, kind: Element, rounding: str) -> Tensor:
    """Codes of a 4-bit format, uint8, sign in bit 3; out of range values saturate."""
    _, exponent = torch.frexp(values)
    step = torch.ldexp(torch.ones_like(values), (exponent - 1).clamp(0, kind.exponent) - (2 if kind is E1M2 else 1))
    steps = values / step
    if rounding == "rint":
        rounded = steps.round()
    elif rounding == "floor":
        rounded = steps.floor()
    else:
        rounded = steps.abs().add_(0.5).floor_().copysign_(steps)
    magnitude = (rounded.abs_() * step).clamp_(max=kind.largest)
    codes = torch.bucketize(magnitude.contiguous(), values.new_tensor(kind.values))
    return (codes + 8 * values.signbit()).to(torch.uint8)


def decode_fp4(packed: Tensor, kind: Element) -> Tensor:
    """float32 values of packed codes; a tensor packed along its last dimension but one and transposed stays so."""
    if packed.dim() > 1 and packed.stride(-1) != 1 and packed.stride(-2) == 1:
        return decode_fp4(packed.transpose(-1, -2), kind).transpose(-1, -2)
    table = torch.tensor(kind.values + tuple(-value for value in kind.values))
    return table[unpack_nibbles(packed).int()]


def quantise(
    values: Tensor,
    kind: Element,
    *,
    axis: int = -1,
    block: int = 32,
    algorithm: int = 0,
    rounding: str = "rint",
    divisor: float = 0.0,
    bound: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Elements and scales (uint8, laid out in pairs) of float32 ``values``.

    Args:
        algorithm: 0 takes the exponent of a block's largest magnitude minus the format's; else the block's largest
            magnitude divided by ``divisor`` (the format's largest value if 0) is rounded up to a power of two.
        bound: Lower bound of a block's largest magnitude.
    """
    axis %= values.dim()
    moved = values.movedim(axis, -1)
    size = moved.shape[-1]
    blocks = F.pad(moved, (0, -size % block)).unflatten(-1, (-1, block))
    largest = blocks.abs().amax(-1)
    if bound:
        largest = largest.clamp(min=bound)
    codes = _scale_codes(largest, kind, algorithm, divisor or kind.largest)
    scaled = torch.ldexp(blocks, (127 - codes).unsqueeze(-1)).flatten(-2)[..., :size].movedim(-1, axis)
    pairs = F.pad(codes, (0, codes.shape[-1] % 2)).unflatten(-1, (-1, 2)).to(torch.uint8)
    scales = pairs.movedim(-2, axis).contiguous()
    if kind.dtype is None:
        return pack_nibbles(encode_fp4(scaled, kind, rounding)), scales
    return scaled.clamp(-kind.largest, kind.largest).contiguous().to(kind.dtype), scales


def expand_scales(scales: Tensor, size: int, axis: int = -1, block: int = 32) -> Tensor:
    """float32 scales for every element along ``axis`` (of the elements, not counting the pair dimension)."""
    axis %= scales.dim() - 1
    codes = scales if scales.dtype == torch.float8_e8m0fnu else scales.contiguous().view(torch.float8_e8m0fnu)
    by_block = codes.float().movedim(axis, -2).flatten(-2)
    return by_block.repeat_interleave(block, -1)[..., :size].movedim(-1, axis)


def dequantise(elements: Tensor, scales: Tensor, kind: Element, axis: int = -1, block: int = 32) -> Tensor:
    """float32 values of elements and scales laid out as :func:`quantise` returns them."""
    values = decode_fp4(elements, kind) if kind.dtype is None else elements.float()
    return values * expand_scales(scales, values.shape[axis], axis, block)
