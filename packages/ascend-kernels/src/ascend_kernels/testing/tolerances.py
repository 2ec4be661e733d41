"""How far a result may be from its reference: one table, by the kind of arithmetic and the dtype of the result."""

from __future__ import annotations

from typing import Literal

import torch

Kind = Literal["exact", "elementwise", "reduction", "matmul", "recurrence"]
"""
- ``exact``: copies and integers.
- ``elementwise``: a handful of roundings in fp32, one at the end.
- ``reduction``: sums over a row in fp32 in an order of the implementation's choice (norms, softmax).
- ``matmul``: products of matrices with operands in the result's dtype, accumulated in fp32.
- ``recurrence``: many matrix products after one another, intermediate results in the result's dtype.
"""

# (relative, absolute). A bf16 number has 8 significant bits, so that half a unit in the last place is 2**-9 and two
# implementations that round once each differ by one unit, 2**-8 = 3.9e-3 at most; fp16 has 11 bits, fp32 24.
_TABLE: dict[Kind, dict[torch.dtype, tuple[float, float]]] = {
    "elementwise": {
        torch.float32: (2e-6, 1e-6),
        torch.float16: (2e-3, 1e-5),
        torch.bfloat16: (8e-3, 1e-5),
    },
    "reduction": {
        torch.float32: (1e-5, 1e-5),
        torch.float16: (2e-3, 1e-4),
        torch.bfloat16: (8e-3, 1e-4),
    },
    "matmul": {
        torch.float32: (2e-5, 2e-5),
        torch.float16: (2e-3, 2e-3),
        torch.bfloat16: (1.6e-2, 1.6e-2),
    },
    "recurrence": {
        torch.float32: (1e-4, 1e-4),
        torch.float16: (5e-3, 5e-3),
        torch.bfloat16: (2e-2, 2e-2),
    },
}


def assert_close(actual: torch.Tensor, expected: torch.Tensor, kind: Kind) -> None:
    """Fail unless every element is within the table's tolerance, with equal shapes; NaN equals NaN nowhere.

    The tolerance is that of ``actual``'s dtype; ``expected`` may be in a higher precision. Integers and ``exact``
    compare exactly.
    """
    if kind == "exact" or not actual.dtype.is_floating_point:
        torch.testing.assert_close(actual, expected.to(actual.dtype), rtol=0, atol=0)
        return
    relative, absolute = _TABLE[kind][actual.dtype]
    torch.testing.assert_close(actual.double(), expected.double(), rtol=relative, atol=absolute)


def relative_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """``|actual - expected| / |expected|`` in float64, NaN if either has one."""
    difference = (actual.double() - expected.double()).norm()
    return float(difference / expected.double().norm().clamp(min=1e-30))
