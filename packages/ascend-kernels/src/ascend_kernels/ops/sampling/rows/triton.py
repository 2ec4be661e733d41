"""Parts of kernels over rows of a vocabulary."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-1e37)
"""Where a running maximum starts: finite, since the difference of two infinities is no number. A row whose logits all
lie below counts as excluded."""


@triton.jit
def add_exponentials(largest, total, value):
    """One step of a sum of exponentials per lane: ``total`` is relative to ``largest``, one exponential is computed."""
    difference = value - largest
    factor = tl.exp(-tl.abs(difference))
    total = tl.where(difference > 0, total * factor + 1.0, total + factor)
    return tl.maximum(largest, value), total


@triton.jit
def join_exponentials(largest, total):
    """The maximum over all lanes and the sum relative to it."""
    top = tl.max(largest, axis=0)
    return top, tl.sum(total * tl.exp(largest - top), axis=0)


@triton.jit
def row_maximum(row, vocab, BLOCK: tl.constexpr):
    """The largest value of a row."""
    lane = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK], float("-inf"), dtype=tl.float32)
    for start in range(0, vocab, BLOCK):
        column = start + lane
        value = tl.load(row + column, mask=column < vocab, other=float("-inf")).to(tl.float32)
        largest = tl.maximum(largest, value)
    return tl.max(largest, axis=0)


@triton.jit
def best_lane(best, token):
    """The token of the best score over all lanes; of tied ones the lowest."""
    return tl.min(tl.where(best == tl.max(best, axis=0), token, 2147483647), axis=0)


@triton.jit
def floor_of_min_p(share):
    """How far below the largest logit a token may be whose probability is ``share`` of the largest."""
    return tl.where(share > 0, tl.log(tl.where(share > 0, share, 1.0)), float("-inf"))


def as_rows(logits: torch.Tensor) -> torch.Tensor:
    """``logits[..., vocab]`` as ``[rows, vocab]`` with neighbouring columns; a copy only where strides force one."""
    if logits.stride(-1) != 1 and logits.shape[-1] != 1:
        logits = logits.contiguous()
    return logits.reshape(-1, logits.shape[-1])
