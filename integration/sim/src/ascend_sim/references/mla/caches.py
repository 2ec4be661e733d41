# SPDX-License-Identifier: Apache-2.0
"""Writing one token per row into the caches of the fused operators, in each of their cache modes.

==============  =====================================  ==============================================================
mode            cache                                  index
==============  =====================================  ==============================================================
PA, PA_BNSD,    [blocks, block_size, N, D]             a slot per token
PA_BSND
PA_NZ           the same memory as                     a slot per token
                [blocks, N * D / c, block_size, c]
PA_BLK_BNSD,    [blocks, block_size, N, D]             one entry per block of a request's tokens
PA_BLK_BSND
PA_BLK_NZ       as PA_NZ                               as PA_BLK_BNSD
==============  =====================================  ==============================================================

c elements take 32 bytes. A negative index skips its tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.kv_cache import write_slots

PAGED = ("PA", "PA_BNSD", "PA_BSND", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_BSND", "PA_BLK_NZ")


def fractal_view(cache: Tensor) -> Tensor:
    """A cache [blocks, block_size, N, D] as the memory of the fractal layout, [blocks, N * D / c, block_size, c]."""
    blocks, size, heads, width = cache.shape
    unit = 32 // cache.element_size()
    return cache.view(blocks, heads * width // unit, size, unit)


def write_paged(op: str, cache: Tensor, tokens: Tensor, slots: Tensor, mode: str) -> None:
    """Write ``tokens`` [T, N, D], in the cache's dtype, to ``slots`` [T] of a cache [blocks, block_size, N, D]."""
    if list(cache.shape[2:]) != list(tokens.shape[1:]):
        raise limits.refuse(op, "cache.shape[2:]", list(cache.shape[2:]), f"{list(tokens.shape[1:])}, heads and size")
    if cache.dtype != tokens.dtype:
        raise limits.refuse(op, "cache.dtype", cache.dtype, f"{tokens.dtype} with these scales")
    fractal = mode.endswith("NZ")
    write_slots(op, fractal_view(cache) if fractal else cache, tokens, slots, fractal)


def block_slots(starts: Tensor, lengths: list[int], block_size: int) -> Tensor:
    """The slot of every token of requests of ``lengths``, for ``starts`` of their blocks, request by request.

    Args:
        starts: First slot of each block of ``block_size`` tokens, negative for one to skip; 1-D.
    """
    position = torch.cat([torch.arange(n) for n in lengths])
    before = torch.tensor([0, *(-(-n // block_size) for n in lengths)]).cumsum(0)[:-1]
    block = before.repeat_interleave(torch.tensor(lengths)) + position // block_size
    first = starts.flatten().long()[block]
    return torch.where(first < 0, -1, first + position % block_size)


def saturate(values: Tensor) -> Tensor:
    """Round to the nearest integer, ties to even, and clamp to int8."""
    return values.round().clamp_(-128, 127).to(torch.int8)
