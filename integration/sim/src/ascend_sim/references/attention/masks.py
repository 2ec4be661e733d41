# SPDX-License-Identifier: Apache-2.0
"""Which keys a query may see: the operators' ``sparse_mode`` values.

A query at row i of Sq sees a key at column j of Sk if it lies in a band ``-before <= j - i - shift <= after``, where
shift is 0 (counted from the upper left corner) or Sk - Sq (from the lower right), and the mask has no 1 there.

====  ================  ===========  ======  ======  ==========================
mode  name              mask         before  after   counted from
====  ================  ===========  ======  ======  ==========================
0     default           Sq x Sk      given   given   upper left; no mask: all seen
1     all               Sq x Sk      --      --
2     left-up causal    compressed   all     0       upper left
3     right-down causal compressed   all     0       lower right
4     band              compressed   given   given   lower right
====  ================  ===========  ======  ======  ==========================

A compressed mask is 2048 x 2048 with ones above the diagonal, whatever the lengths.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ascend_sim.references import limits

UNBOUNDED = 2147483647
"""The operators' default of pre_tokens and next_tokens."""


@dataclass(frozen=True, slots=True)
class Band:
    """The keys each query sees, by distance.

    Args:
        before: How many keys before its own position, inclusive.
        after: How many after.
        lower_right: Count from the lower right corner.
    """

    before: int = UNBOUNDED
    after: int = UNBOUNDED
    lower_right: bool = False

    def allowed(self, queries: int, keys: int) -> Tensor | None:
        """Bool [queries, keys], or None if every key is seen."""
        shift = keys - queries if self.lower_right else 0
        if self.before >= queries - 1 + shift and self.after >= keys - 1 - shift:
            return None
        distance = torch.arange(keys)[None] - torch.arange(shift, shift + queries)[:, None]
        return (distance >= -self.before) & (distance <= self.after)


def band(op: str, sparse_mode: int, before: int, after: int, has_mask: bool) -> Band:
    """The band of a sparse mode."""
    if sparse_mode == 0:
        return Band(before, after) if has_mask else Band()
    if sparse_mode == 1:
        return Band()
    if sparse_mode == 2:
        return Band(after=0)
    if sparse_mode == 3:
        return Band(after=0, lower_right=True)
    if sparse_mode == 4:
        return Band(before, after, lower_right=True)
    raise limits.refuse(op, "sparse_mode", sparse_mode, "0, 1, 2, 3, 4")


def check_compressed(op: str, mask: Tensor | None, sparse_mode: int, values: bool = True) -> None:
    """Raise unless ``mask`` is the compressed causal mask that modes 2, 3 and 4 need.

    The hardware leaves its values to the caller and computes nonsense from others; the simulation looks at the two
    diagonals and the corner rows, if ``values`` (single queries do not depend on them).
    """
    size = limits.numbers(op)["compressed_mask"]
    expected = f"[{size}, {size}] with ones above the diagonal for sparse_mode {sparse_mode}"
    if mask is None:
        raise limits.refuse(op, "atten_mask", None, expected)
    if tuple(mask.shape[-2:]) != (size, size) or mask.numel() != size * size:
        raise limits.refuse(op, "atten_mask.shape", list(mask.shape), expected)
    if not values:
        return
    square = mask.view(size, size)
    lower = square.diagonal().any() | square[-1].any()
    upper = square.diagonal(1).all() & square[0, 1:].all()
    if bool(lower) or not bool(upper):
        raise limits.refuse(op, "atten_mask", "of other values", expected)


def full_mask(op: str, mask: Tensor, batch: int, queries: int, keys: int) -> Tensor:
    """``mask`` of modes 0 and 1 as "may be seen", bool [batch or 1, queries, keys].

    Accepts [Sq, Sk], [B or 1, Sq, Sk], [B or 1, 1, Sq, Sk] and, for one query, [B, Sk]; Sq and Sk may be padded up.
    """
    shape = list(mask.shape)
    if mask.dim() == 2:
        mask = mask[:, None] if queries == 1 and shape[0] == batch and batch != 1 else mask[None]
    elif mask.dim() == 4:
        if shape[1] != 1:
            raise limits.refuse(op, "atten_mask.shape", shape, "1 in dimension 1")
        mask = mask[:, 0]
    if mask.dim() != 3 or mask.shape[0] not in (1, batch) or mask.shape[1] < queries or mask.shape[2] < keys:
        raise limits.refuse(op, "atten_mask.shape", shape, f"at least [{batch} or 1, 1, {queries}, {keys}]")
    return mask[:, :queries, :keys] == 0
