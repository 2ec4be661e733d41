# SPDX-License-Identifier: Apache-2.0
"""Rounding in numpy float64, and comparing with it."""

from __future__ import annotations

import numpy as np
import torch

from ..oracle import as_float64


def quantised(values: np.ndarray, low: int = -128, high: int = 127) -> np.ndarray:
    """Rounded half to even and saturated."""
    return np.clip(np.rint(values), low, high)


def assert_same_steps(actual: torch.Tensor, expected: np.ndarray, share: float = 0.01) -> None:
    """Equal, but for a few values whose float32 and float64 forms round to neighbouring steps."""
    difference = np.abs(as_float64(actual) - expected)
    assert difference.max() <= 1
    assert (difference != 0).mean() <= share


def by_token(values: np.ndarray, largest: int = 127) -> tuple[np.ndarray, np.ndarray]:
    """Steps and scales by row of the last axis."""
    scale = np.abs(values).max(-1) / largest
    return quantised(values / scale[..., None], -largest - 1, largest), scale


def int4_of(packed: torch.Tensor) -> np.ndarray:
    """Values of int32 that hold eight int4 each, the first in the lowest bits."""
    words = packed.numpy().astype(np.int64)[..., None] >> (4 * np.arange(8))
    return ((words & 15) ^ 8) - 8 if packed.dim() == 0 else (((words & 15) ^ 8) - 8).reshape(*packed.shape[:-1], -1)
