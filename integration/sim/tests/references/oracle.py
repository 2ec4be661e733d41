# SPDX-License-Identifier: Apache-2.0
"""Formulas of the vendor's pages in numpy float64, head by head and request by request; nothing of the references."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]
TOLERANCE = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
"""Largest absolute difference from float64 for results of size about 1, per dtype: a few units in the last place."""


def as_float64(tensor: Tensor) -> Array:
    """The exact values of a tensor of any floating or integer dtype."""
    return tensor.detach().double().numpy()


def assert_close(actual: Tensor, expected: Array, tolerance: float | None = None) -> None:
    """Compare with a float64 result of the same shape."""
    assert tuple(actual.shape) == expected.shape
    bound = TOLERANCE[actual.dtype] if tolerance is None else tolerance
    np.testing.assert_allclose(as_float64(actual), expected, rtol=bound, atol=bound)


def attention(
    query: Array,
    key: Array,
    value: Array,
    scale: float,
    seen: NDArray[np.bool_] | None = None,
    bias: Array | None = None,
    sink: Array | None = None,
) -> tuple[Array, Array]:
    """softmax(scale q k^T + bias) v of one request.

    query [S, H, D], key [K, G, D], value [K, G, Dv], seen [S, K], bias [H, S, K], sink [H]. Returns [S, H, Dv] and the
    log-sum-exp of the scores [S, H]; a row that sees nothing gives zeros and +inf.
    """
    rows, heads, _ = query.shape
    out = np.zeros((rows, heads, value.shape[2]))
    lse = np.full((rows, heads), np.inf)
    for head in range(heads):
        group = head * key.shape[1] // heads
        scores = query[:, head] @ key[:, group].T * scale
        if bias is not None:
            scores = scores + bias[head]
        for row in range(rows):
            columns = np.arange(key.shape[0]) if seen is None else np.flatnonzero(seen[row])
            if not len(columns):
                continue
            weights = np.exp(scores[row, columns])
            total = weights.sum() + (np.exp(sink[head]) if sink is not None else 0.0)
            out[row, head] = weights @ value[columns, group] / total
            lse[row, head] = np.log(weights.sum())
    return out, lse


def sparse_seen(mode: int, queries: int, keys: int, before: int, after: int) -> NDArray[np.bool_]:
    """Which keys a query sees by the page's description of sparse_mode, without the caller's mask."""
    seen = np.zeros((queries, keys), dtype=bool)
    for i in range(queries):
        for j in range(keys):
            lower_right = j - i - (keys - queries)
            seen[i, j] = {
                0: -before <= j - i <= after,
                1: True,
                2: j <= i,
                3: lower_right <= 0,
                4: -before <= lower_right <= after,
            }[mode]
    return seen
