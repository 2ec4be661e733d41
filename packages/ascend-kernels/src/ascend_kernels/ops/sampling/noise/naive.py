"""The definition in torch.

Every token of every row has a noise of its own, a function of the row's seed and position and of the token's id: the
same on every device, in every batch and with every launch plan. The function is a keyed hash: two rounds of lowbias32
(Chris Wellons, hash-prospector, public domain), with a key of the row before each. Vector cores of NPUs multiply 32-bit
integers without the upper half of the product, so that Philox, which needs it, is slow there.
"""

from __future__ import annotations

import torch

MASK = 0xFFFFFFFF
FIRST, SECOND = 0x7FEB352D, 0x846CA68B
GOLDEN = 0x9E3779B9


def mix(x: torch.Tensor) -> torch.Tensor:
    """lowbias32 of 32-bit numbers held in int64."""
    x = x ^ (x >> 16)
    x = (x * FIRST) & MASK
    x = x ^ (x >> 15)
    x = (x * SECOND) & MASK
    return x ^ (x >> 16)


def random_bits(seeds: torch.Tensor, positions: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """32 random bits in int64, broadcast over int64 seeds, positions and tokens."""
    key = mix((seeds & MASK) ^ GOLDEN)
    key = mix(key ^ ((seeds >> 32) & MASK))
    key = mix(key ^ (positions & MASK))
    other = mix((key + GOLDEN) & MASK)
    return mix(mix(tokens ^ key) ^ other)


def uniform(bits: torch.Tensor) -> torch.Tensor:
    """Numbers in (0, 1) in fp32 from random bits, with full precision near 0."""
    step = 2.0**-31 * (1 - 2.0**-24)  # the largest of 31 bits rounds to 2**31
    return (bits >> 1).float() * step + step / 2


def exponential(seeds: torch.Tensor, positions: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Exp(1) noise in fp32: the token with the least ``noise / probability`` is a sample."""
    return -torch.log1p(-uniform(random_bits(seeds, positions, tokens)))
