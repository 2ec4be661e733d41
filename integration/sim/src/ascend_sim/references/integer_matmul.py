# SPDX-License-Identifier: Apache-2.0
"""Products of int8 matrices, exact, at the speed of float32."""

from __future__ import annotations

import torch
from torch import Tensor

_EXACT_TERMS = 1024
"""Sums of that many products of int8 are below 2^24 and so exact in float32."""


def int8_matmul(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right`` of int8 [M, K] and [K, N], summed exactly and rounded once to float32."""
    terms = left.shape[1]
    if terms <= _EXACT_TERMS:
        return left.float() @ right.float()
    parts = zip(left.split(_EXACT_TERMS, 1), right.split(_EXACT_TERMS, 0), strict=True)
    total = torch.zeros(left.shape[0], right.shape[1], dtype=torch.int32)
    for a, b in parts:
        total += (a.float() @ b.float()).int()
    return total.float()
