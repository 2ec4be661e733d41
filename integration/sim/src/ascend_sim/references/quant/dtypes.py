# SPDX-License-Identifier: Apache-2.0
"""torch_npu's numbers of result dtypes and the values each can hold.

Numbers below 256 are torch's (uint8 0, int8 1, …), those above are CANN's plus 256 (``torch_npu.float8_e4m3fn`` …).
"""

from __future__ import annotations

import torch

from ascend_sim.references import limits

INT4_NUMBERS = frozenset({16, 285})
"""``torch.quint4x2`` and ``torch_npu.int4``: eight values packed into an int32."""
_PLAIN = {
    0: torch.uint8,
    1: torch.int8,
    3: torch.int32,
    5: torch.float16,
    6: torch.float32,
    12: torch.int8,
    13: torch.uint8,
    14: torch.int32,
    15: torch.bfloat16,
}
_FP8 = {23: torch.float8_e5m2, 24: torch.float8_e4m3fn, 291: torch.float8_e5m2, 292: torch.float8_e4m3fn}
LARGEST = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}
"""The divisor of a dynamic scale by result dtype."""
INT4_LARGEST = 7.0


def float_dtype(op: str, argument: str, number: int) -> torch.dtype:
    """float16, bfloat16 or float32 by number."""
    dtype = _PLAIN.get(number)
    if dtype is None or not dtype.is_floating_point:
        raise limits.not_simulated(op, argument, number)
    return dtype


def plain_dtype(op: str, argument: str, number: int | None, default: torch.dtype = torch.int8) -> torch.dtype:
    """A dtype torch has for what the number means; qint8 is int8 and so on."""
    if number is None:
        return default
    dtype = _PLAIN.get(number, _FP8.get(number))
    if dtype is None:
        raise limits.not_simulated(op, argument, number)
    return dtype
