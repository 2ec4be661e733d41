"""Parts of the attention kernels: a tile of keys, and what it adds to the sums of some rows of queries."""

from __future__ import annotations

import triton
import triton.language as tl

from ascend_kernels.ops.fla.offsets.triton import as_int64


@triton.jit
def load_rows(base, offset, count, stride, KEYS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """``[KEYS, BLOCK]``: the first ``count`` rows behind ``base + offset``, zeros in the rest."""
    row = tl.arange(0, KEYS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    return tl.load(base + offset + row * stride + lane, mask=(row < count) & (lane < SIZE), other=0.0)


@triton.jit
def load_paged(
    cache, table, first, count, block_stride, slot_stride,
    PAGE: tl.constexpr, GATHER: tl.constexpr, KEYS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """``[KEYS, BLOCK]``: ``count`` rows of a sequence from ``first`` on, out of the pages that ``table`` lists."""
    if GATHER:
        row = tl.arange(0, KEYS)
        inside = row < count
        page = tl.load(table + (first + row) // PAGE, mask=inside, other=0).to(tl.int64)
        place = page * block_stride + ((first + row) % PAGE) * slot_stride
        lane = tl.arange(0, BLOCK)[None, :]
        return tl.load(cache + place[:, None] + lane, mask=inside[:, None] & (lane < SIZE), other=0.0)
    page = tl.load(table + first // PAGE)
    return load_rows(
        cache, as_int64(page) * block_stride + (first % PAGE) * slot_stride, count, slot_stride, KEYS, SIZE, BLOCK
    )


@triton.jit
def scaled_query(query, scales, scale, INT8: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """The query and the factor of its products with keys; of int8 keys the channels' scales go into the query."""
    if INT8:
        lane = tl.arange(0, BLOCK)
        channel = tl.load(scales + lane, mask=lane < SIZE, other=0.0)
        # Relative to the largest, so that small scales do not become subnormal.
        largest = tl.maximum(tl.max(channel, axis=0), 1e-30)
        query = (query.to(tl.float32) * (channel / largest)[None, :]).to(query.dtype)
        scale = scale * largest
    return query, scale


@triton.jit
def add_tile(
    query, key, value, visible, highest, weight, sums, scale, soft_cap, CAPPED: tl.constexpr,
):  # fmt: skip
    """Highest score, sum of weights and weighted sum of values of each row, with one more tile of keys."""
    scores = tl.dot(query, tl.trans(key.to(query.dtype)), input_precision="ieee") * scale
    if CAPPED:
        # tanh by its exponential, which every target has.
        scores = soft_cap * (1.0 - 2.0 / (tl.exp(scores * (2.0 / soft_cap)) + 1.0))
    scores = tl.where(visible, scores, float("-inf"))
    above = tl.maximum(highest, tl.max(scores, axis=1))
    # Where nothing has been seen yet, 0 stands for the highest: all weights are exp(-inf).
    base = tl.where(above == float("-inf"), 0.0, above)
    fade = tl.exp(highest - base)
    weights = tl.exp(scores - base[:, None])
    weight = weight * fade + tl.sum(weights, axis=1)
    product = tl.dot(weights.to(query.dtype), value.to(query.dtype), input_precision="ieee")
    return above, weight, sums * fade[:, None] + product


@triton.jit
def normalised(highest, weight, sums):
    """Output and log-sum-exp of each row; 0 and -inf where it has seen nothing."""
    some = weight > 0
    total = tl.where(some, weight, 1.0)
    lse = tl.where(some, tl.where(some, highest, 0.0) + tl.log(total), float("-inf"))
    return sums / total[:, None], lse
