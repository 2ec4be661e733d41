# SPDX-License-Identifier: Apache-2.0
"""Rounding to integers and packing int4: eight to an int32 or two to a byte, the first in the lowest bits."""

from __future__ import annotations

import torch
from torch import Tensor


def saturate(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Round to the nearest value of ``dtype``, ties to even, clamping what is out of range; not in place."""
    if dtype.is_floating_point:
        largest = torch.finfo(dtype).max
        return values.clamp(-largest, largest).to(dtype)
    info = torch.iinfo(dtype)
    return values.round().clamp_(info.min, info.max).to(dtype)


def saturate_int4(values: Tensor) -> Tensor:
    """Round half to even and clamp to [-8, 7]; int8."""
    return values.round().clamp_(-8, 7).to(torch.int8)


def pack_nibbles(codes: Tensor) -> Tensor:
    """Pairs along the last dimension as bytes, uint8; of each value the low four bits count."""
    low, high = codes.to(torch.uint8).unflatten(-1, (-1, 2)).unbind(-1)
    return (low & 15) | (high << 4)


def unpack_nibbles(packed: Tensor) -> Tensor:
    """The unsigned inverse of :func:`pack_nibbles`, uint8."""
    data = packed.contiguous().view(torch.uint8)
    return torch.stack((data & 15, data >> 4), -1).flatten(-2)


def pack_int4(values: Tensor) -> Tensor:
    """Integers in [-8, 7] with a last dimension divisible by 8, as int32."""
    return pack_nibbles(values).contiguous().view(torch.int32)


def unpack_int4(packed: Tensor) -> Tensor:
    """int8 values of packed int4 of any carrier dtype; a tensor packed along K and transposed stays so."""
    if packed.dim() > 1 and packed.stride(-1) != 1 and packed.stride(-2) == 1:
        return unpack_int4(packed.transpose(-1, -2)).transpose(-1, -2)
    codes = unpack_nibbles(packed).view(torch.int8)
    return (codes ^ 8) - 8
