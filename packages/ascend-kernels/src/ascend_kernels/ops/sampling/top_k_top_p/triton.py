"""Triton kernels: thresholds by bisection among the values that lanes keep in registers, or among all values."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.sampling.rows.triton import LOWEST, add_exponentials, row_maximum
from ascend_kernels.ops.sampling.top_k_top_p.plan import plan_truncation
from ascend_kernels.target import current_target


@triton.jit
def key_of(value):
    """The bits of a float as an integer that is ordered as the float is."""
    bits = value.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def value_of(key):
    """The float of a key."""
    return (key ^ ((key >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def middle_of(low, high):
    """An integer between two keys; their difference may not fit into 32 bits."""
    return (low & high) + ((low ^ high) >> 1)


@triton.jit
def keep(row, vocab, threshold, BLOCK: tl.constexpr):
    """Exclude what lies below the threshold, from the end of the row, which is still in the cache."""
    lane = tl.arange(0, BLOCK)
    blocks = tl.cdiv(vocab, BLOCK)
    for block in range(blocks):
        column = (blocks - 1 - block) * BLOCK + lane
        value = tl.load(row + column, mask=column < vocab, other=float("-inf")).to(tl.float32)
        value = tl.where(value < threshold, float("-inf"), value)
        tl.store(row + column, value.to(row.dtype.element_ty), mask=column < vocab)


@triton.jit
def limits(top_k, top_p, request, vocab, HAS_K: tl.constexpr, HAS_P: tl.constexpr):
    """A row's k, the vocabulary's size where there is no limit, and its p, 1 where there is none."""
    k = vocab
    if HAS_K:
        given = tl.load(top_k + request).to(tl.int32)
        k = tl.where((given >= 1) & (given < vocab), given, vocab)
    p = 1.0
    if HAS_P:
        p = tl.minimum(tl.load(top_p + request), 1.0)
    return k, p


@triton.jit
def from_below(x_row, vocab, below, bound, zero, share, BLOCK: tl.constexpr):
    """The least key at which the larger values have less mass than ``share``, and whether it was found.

    Among values above ``below`` (where the larger ones have enough) every lane keeps its three smallest and the
    smallest of those it lost. Below all lost values the lanes have everything.
    """
    lane = tl.arange(0, BLOCK)
    first = tl.full([BLOCK], float("inf"), dtype=tl.float32)
    second = tl.full([BLOCK], float("inf"), dtype=tl.float32)
    third = tl.full([BLOCK], float("inf"), dtype=tl.float32)
    lost = tl.full([BLOCK], float("inf"), dtype=tl.float32)
    sums = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, vocab, BLOCK):
        column = start + lane
        value = tl.load(x_row + column, mask=column < vocab, other=float("-inf")).to(tl.float32)
        sums += tl.where(value > below, tl.exp(value - zero), 0.0)
        value = tl.where(value > below, value, float("inf"))
        rest = tl.maximum(first, value)
        first = tl.minimum(first, value)
        value = tl.maximum(second, rest)
        second = tl.minimum(second, rest)
        rest = tl.maximum(third, value)
        third = tl.minimum(third, value)
        lost = tl.minimum(lost, rest)
    least = tl.min(lost, axis=0)
    masses = tl.where(first < least, tl.exp(first - zero), 0.0)
    masses2 = tl.where(second < least, tl.exp(second - zero), 0.0)
    masses3 = tl.where(third < least, tl.exp(third - zero), 0.0)
    total = tl.sum(sums, axis=0)
    found = (total >= share) & (total - tl.sum(masses + masses2 + masses3, axis=0) < share)
    low = key_of(below)
    high = tl.where(found, key_of(bound), low)
    while low < high:
        middle = middle_of(low, high)
        cut = value_of(middle)
        smaller = tl.where(first > cut, 0.0, masses) + tl.where(second > cut, 0.0, masses2)
        smaller += tl.where(third > cut, 0.0, masses3)
        enough = total - tl.sum(smaller, axis=0) >= share
        low = tl.where(enough, middle + 1, low)
        high = tl.where(enough, high, middle)
    return low, found


@triton.jit(do_not_specialize=["rows"])
def lanes_kernel(
    logits,
    top_k,
    top_p,
    request_of_row,
    pending,
    rows,
    vocab,
    logits_stride,
    HAS_K: tl.constexpr,
    HAS_P: tl.constexpr,
    HAS_REQUESTS: tl.constexpr,
    EXHAUSTIVE: tl.constexpr,
    HALVINGS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Every lane keeps its three largest values and the largest of those it lost. A threshold above all lost values is
    exact. One of top-p that may lie below is searched in a second sweep from where it cannot lie; a row whose threshold
    is not found so either stays pending."""
    lane = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        x_row = logits + row * logits_stride
        request = row
        if HAS_REQUESTS:
            request = tl.load(request_of_row + row).to(tl.int64)
        k, p = limits(top_k, top_p, request, vocab, HAS_K, HAS_P)
        first = tl.full([BLOCK], float("-inf"), dtype=tl.float32)
        second = tl.full([BLOCK], float("-inf"), dtype=tl.float32)
        third = tl.full([BLOCK], float("-inf"), dtype=tl.float32)
        lost = tl.full([BLOCK], float("-inf"), dtype=tl.float32)
        largest = tl.zeros([BLOCK], dtype=tl.float32) + LOWEST
        sums = tl.zeros([BLOCK], dtype=tl.float32)
        for start in range(0, vocab, BLOCK):
            column = start + lane
            value = tl.load(x_row + column, mask=column < vocab, other=float("-inf")).to(tl.float32)
            if HAS_P:
                largest, sums = add_exponentials(largest, sums, value)
            rest = tl.minimum(first, value)
            first = tl.maximum(first, value)
            value = tl.minimum(second, rest)
            second = tl.maximum(second, rest)
            rest = tl.minimum(third, value)
            third = tl.maximum(third, value)
            lost = tl.maximum(lost, rest)
        top = tl.max(first, axis=0)
        bound = tl.max(lost, axis=0)
        zero = tl.maximum(top, LOWEST)  # exponentials are relative to it
        threshold = tl.minimum(top, float("-inf"))
        exact = top == top
        if HAS_K:
            limited = k < vocab
            larger = (first > bound).to(tl.int32) + (second > bound).to(tl.int32) + (third > bound).to(tl.int32)
            exact = (tl.sum(larger, axis=0) >= k) | (bound == float("-inf")) | (k == vocab)
            # The least key at which fewer than k values are larger: that of the k-th largest value. Any key between it
            # and the next smaller value excludes the same.
            low = key_of(bound)
            high = tl.where(exact & limited, key_of(top), low)
            while low < high:
                middle = middle_of(low, high)
                cut = value_of(middle)
                larger = (first > cut).to(tl.int32) + (second > cut).to(tl.int32) + (third > cut).to(tl.int32)
                count = tl.sum(larger, axis=0)
                low = tl.where(count >= k, middle + 1, low)
                high = tl.where(count == k, low, tl.where(count >= k, high, middle))
            threshold = tl.where(limited, value_of(low), threshold)
        if HAS_P:
            masses = tl.where(first >= threshold, tl.exp(first - zero), 0.0)
            masses2 = tl.where(second >= threshold, tl.exp(second - zero), 0.0)
            masses3 = tl.where(third >= threshold, tl.exp(third - zero), 0.0)
            total = tl.sum(sums * tl.exp(largest - zero), axis=0)
            if HAS_K:
                total = tl.where(limited, tl.sum(masses + masses2 + masses3, axis=0), total)
            larger = tl.where(first > bound, masses, 0.0) + tl.where(second > bound, masses2, 0.0)
            larger += tl.where(third > bound, masses3, 0.0)
            found = (tl.sum(larger, axis=0) >= p * total) | (bound == float("-inf")) | (p == 1.0)
            if HAS_K:
                found = found | limited
            within = exact & found
            # The least key at which the larger values have less than p of the mass.
            low = tl.maximum(key_of(threshold), key_of(bound))
            high = tl.where(within & (p < 1.0), key_of(top), low)
            while low < high:
                middle = middle_of(low, high)
                cut = value_of(middle)
                larger = tl.where(first > cut, masses, 0.0) + tl.where(second > cut, masses2, 0.0)
                larger += tl.where(third > cut, masses3, 0.0)
                enough = tl.sum(larger, axis=0) >= p * total
                low = tl.where(enough, middle + 1, low)
                high = tl.where(enough, high, middle)
            threshold = tl.where(p < 1.0, value_of(low), threshold)
            if not EXHAUSTIVE:
                again = exact & (found == 0)
                if again:
                    # All tokens below this have together at most what p leaves out. What lanes know of larger ones
                    # brings it closer: what they lost only adds to the mass.
                    below = zero + tl.log((1.0 - p) * total / vocab) - 0.01
                    above = bound
                    for _ in range(HALVINGS):
                        cut = 0.5 * (below + above)
                        larger = tl.where(first > cut, masses, 0.0) + tl.where(second > cut, masses2, 0.0)
                        larger += tl.where(third > cut, masses3, 0.0)
                        enough = tl.sum(larger, axis=0) >= p * total
                        below = tl.where(enough, cut, below)
                        above = tl.where(enough, above, cut)
                    low, within = from_below(x_row, vocab, below, bound, zero, p * total, BLOCK)
                    threshold = value_of(low)
            exact = within
        if EXHAUSTIVE:
            keep(x_row, vocab, threshold, BLOCK)
        else:
            tl.store(pending + row, tl.where(exact, 0, 1))
            if exact & (threshold > float("-inf")):
                keep(x_row, vocab, threshold, BLOCK)


@triton.jit
def narrowed(low, high, first, second, third, enough1, enough2, enough3):
    """The quarter of a range of keys in which a threshold lies, from whether enough lies above each of three keys."""
    new_low = tl.where(enough3, third + 1, tl.where(enough2, second + 1, tl.where(enough1, first + 1, low)))
    new_high = tl.where(enough1, tl.where(enough2, tl.where(enough3, high, third), second), first)
    return tl.minimum(new_low, new_high), new_high


@triton.jit
def least_key(x_row, vocab, low, high, wanted, zero, MASSES: tl.constexpr, BLOCK: tl.constexpr):
    """The least key between two at which the larger values are fewer than ``wanted``, or with ``MASSES`` have together
    less mass: sixteen passes over a row, each of which leaves a quarter, find one of 2**32. Counts are exact floats."""
    lane = tl.arange(0, BLOCK)
    for _ in range(16):
        key2 = middle_of(low, high)
        key1 = middle_of(low, key2)
        key3 = middle_of(key2, high)
        cut1, cut2, cut3 = value_of(key1), value_of(key2), value_of(key3)
        larger1 = tl.zeros([BLOCK], dtype=tl.float32)
        larger2 = tl.zeros([BLOCK], dtype=tl.float32)
        larger3 = tl.zeros([BLOCK], dtype=tl.float32)
        for start in range(0, vocab, BLOCK):
            column = start + lane
            value = tl.load(x_row + column, mask=column < vocab, other=float("-inf")).to(tl.float32)
            amount = 1.0
            if MASSES:
                amount = tl.exp(value - zero)
            larger1 += tl.where(value > cut1, amount, 0.0)
            larger2 += tl.where(value > cut2, amount, 0.0)
            larger3 += tl.where(value > cut3, amount, 0.0)
        enough1 = tl.sum(larger1, axis=0) >= wanted
        enough2 = tl.sum(larger2, axis=0) >= wanted
        enough3 = tl.sum(larger3, axis=0) >= wanted
        low, high = narrowed(low, high, key1, key2, key3, enough1, enough2, enough3)
    return low


@triton.jit(do_not_specialize=["rows"])
def search_kernel(
    logits,
    top_k,
    top_p,
    request_of_row,
    pending,
    rows,
    vocab,
    logits_stride,
    HAS_K: tl.constexpr,
    HAS_P: tl.constexpr,
    HAS_REQUESTS: tl.constexpr,
    HAS_PENDING: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Thresholds among all values of a row, for the rows that are pending."""
    lane = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        wanted = 1
        if HAS_PENDING:
            wanted = tl.load(pending + row)
        if wanted > 0:
            x_row = logits + row * logits_stride
            request = row
            if HAS_REQUESTS:
                request = tl.load(request_of_row + row).to(tl.int64)
            k, p = limits(top_k, top_p, request, vocab, HAS_K, HAS_P)
            top = row_maximum(x_row, vocab, BLOCK)
            zero = tl.maximum(top, LOWEST)
            threshold = tl.minimum(top, float("-inf"))
            if HAS_K:
                low = least_key(x_row, vocab, key_of(threshold), key_of(top), k.to(tl.float32), zero, False, BLOCK)
                threshold = value_of(low)
            if HAS_P:
                total = tl.zeros([BLOCK], dtype=tl.float32)
                for start in range(0, vocab, BLOCK):
                    column = start + lane
                    value = tl.load(x_row + column, mask=column < vocab, other=float("-inf")).to(tl.float32)
                    total += tl.where(value >= threshold, tl.exp(value - zero), 0.0)
                share = p * tl.sum(total, axis=0)
                low = least_key(x_row, vocab, key_of(threshold), key_of(top), share, zero, True, BLOCK)
                threshold = tl.where(p < 1.0, value_of(low), threshold)
            keep(x_row, vocab, threshold, BLOCK)


def top_k_top_p_triton(
    logits: torch.Tensor,
    top_k: torch.Tensor | None,
    top_p: torch.Tensor | None,
    request_of_row: torch.Tensor | None,
    exhaustive: bool,
) -> None:
    """See :func:`ascend_kernels.top_k_top_p`."""
    rows, vocab = logits.shape
    if rows == 0 or (top_k is None and top_p is None):
        return
    plan = plan_truncation(current_target(logits.device), rows, vocab)
    pending = None
    flags = {"HAS_K": top_k is not None, "HAS_P": top_p is not None, "HAS_REQUESTS": request_of_row is not None}
    if not exhaustive:
        if not plan.exhaustive:
            pending = logits.new_empty(rows, dtype=torch.int32)
        launch(
            lanes_kernel,
            (plan.programs,),
            logits,
            top_k,
            top_p,
            request_of_row,
            pending,
            rows,
            vocab,
            logits.stride(0),
            **flags,
            EXHAUSTIVE=plan.exhaustive,
            HALVINGS=8,
            BLOCK=plan.block,
            num_warps=plan.warps,
        )
        if plan.exhaustive:
            return
    launch(
        search_kernel,
        (plan.programs,),
        logits,
        top_k,
        top_p,
        request_of_row,
        pending,
        rows,
        vocab,
        logits.stride(0),
        **flags,
        HAS_PENDING=pending is not None,
        BLOCK=plan.block,
        num_warps=plan.warps,
    )
