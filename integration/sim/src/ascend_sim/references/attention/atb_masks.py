# SPDX-License-Identifier: Apache-2.0
"""Masks of the Ascend Transformer Boost library's self attention, by their types."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention import atb_requests as forms
from ascend_sim.references.attention.masks import Band
from ascend_sim.references.attention.requests import Requests

NORMAL, ALIBI, COMPRESSED, ALIBI_COMPRESSED = 1, 2, 3, 4
"""Mask types of the library's self attention: added as it is (1, 2), compressed causal, compressed with slopes."""


def causal(op: str, mask: Tensor, sizes: tuple[int, ...]) -> Band:
    """The band of a compressed causal mask [size, size], or that as fractal [1, size / 16, size, 16].

    The hardware leaves its values to the caller; the simulation looks at the two diagonals.
    """
    square = mask.squeeze(0).transpose(0, 1).flatten(1) if mask.dim() == 4 else mask
    if square.dim() != 2 or square.shape[0] != square.shape[1] or square.shape[0] not in sizes:
        raise limits.refuse(op, "mask.shape", list(mask.shape), f"a compressed causal mask of size {sizes}")
    if bool(square.diagonal().any()) or not bool(square.diagonal(1).all()):
        raise limits.refuse(op, "mask", "of other values", "0 up to the diagonal and not 0 above")
    return Band(after=0, lower_right=True)


def alibi(slopes: Tensor, work: Requests, request: int) -> Tensor:
    """``slopes[h] * (i - j)`` for the query at position i and key j <= i, -inf above, [1, H, Sq, Sk] of one request."""
    queries, keys = work.query_lengths[request], work.key_lengths[request]
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)[None]
    bias = slopes.float().view(-1, 1, 1) * distance
    return bias.masked_fill_(distance < 0, -torch.inf)[None]


def run(work: Requests, out: Tensor) -> Tensor:
    """Attend and write the result in the shape of ``out``."""
    return out.copy_(work.attend()[0].reshape(out.shape))


def _with_slopes(work: Requests, slopes: Tensor, out: Tensor) -> Tensor:
    """Causal attention whose scores fall with distance."""
    for request, start in enumerate(work.query_starts):
        part = forms.one(work, request)
        part.bias = alibi(slopes, work, request)
        rows = slice(start, start + work.query_lengths[request])
        out[rows] = part.attend()[0].reshape(out[rows].shape)
    return out


def _as_bias(mask: Tensor, per_head: bool) -> Tensor:
    """[S, S], [H or B, S, S] or [B, H, S, S] as the last."""
    if mask.dim() == 3:
        return mask[None] if per_head else mask[:, None]
    return mask[None, None] if mask.dim() == 2 else mask


def masked(op: str, work: Requests, mask: Tensor | None, slopes: Tensor | None, mask_type: int, out: Tensor) -> Tensor:
    """Apply a mask by its type."""
    if mask_type == 0 and mask is None:
        return run(work, out)
    if mask is None:
        raise limits.refuse(op, "mask", None, f"a mask with mask_type {mask_type}")
    if mask_type in (NORMAL, ALIBI):
        work.bias = _as_bias(mask, per_head=mask_type == ALIBI)
        return run(work, out)
    if mask_type == COMPRESSED:
        work.band = causal(op, mask, (128, 512, 2048))
        return run(work, out)
    if mask_type == ALIBI_COMPRESSED:
        if slopes is None:
            raise limits.refuse(op, "slopes", None, "one per head with mask_type 4")
        return _with_slopes(work, slopes, out)
    raise limits.not_simulated(op, "mask_type", mask_type)
