"""Offsets into tensors of more than 2**31 elements."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def as_int64(index):
    """A scalar index in 64 bits; a loop's counter too, which Triton's interpreter hands over as a Python integer."""
    return tl.full([], 0, tl.int64) + index
