"""The same noise in kernels."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def mix(x):
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def row_keys(seed, position):
    """The two keys of a row, from a 64-bit seed and a position."""
    # Vectors of one element: the interpreter warns of scalars that wrap around.
    one = tl.zeros([1], dtype=tl.uint32)
    key = mix((one + seed.to(tl.uint32)) ^ 0x9E3779B9)
    key = mix(key ^ (seed >> 32).to(tl.uint32))
    key = mix(key ^ position.to(tl.uint32))
    return key, mix(key + 0x9E3779B9)


@triton.jit
def uniform(key, other, token):
    """A number in (0, 1) per token, with full precision near 0."""
    bits = mix(mix(token.to(tl.uint32) ^ key) ^ other)
    # The largest of 31 bits rounds to 2**31; a factor just below 2**-31 keeps the product below 1.
    return (bits >> 1).to(tl.int32).to(tl.float32) * 4.6566125955216364e-10 + 2.3283062977608182e-10


@triton.jit
def logarithm(x):
    """The natural logarithm, by that to base 2, which devices have an instruction for."""
    return tl.log2(x) * 0.6931471805599453


@triton.jit
def exponential(key, other, token):
    """Exp(1) noise per token: -log(1 - u), by its series where u is small and 1 - u would lose it."""
    u = uniform(key, other, token)
    series = u * (1.0 + u * (0.5 + u * (0.33333333 + u * (0.25 + u * 0.2))))
    return tl.where(u < 0.03125, series, -logarithm(1.0 - u))
