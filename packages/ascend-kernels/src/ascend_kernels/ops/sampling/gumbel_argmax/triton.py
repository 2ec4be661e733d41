"""Triton kernel: noise is made where a logit is read; with min-p a row is read twice, for its maximum first."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.sampling.noise.triton import exponential, logarithm, row_keys
from ascend_kernels.ops.sampling.rows.plan import plan_vocab
from ascend_kernels.ops.sampling.rows.triton import as_rows, best_lane, floor_of_min_p, row_maximum
from ascend_kernels.target import current_target

LANE_BYTES = 80
"""Per column: two buffers of the logits, the best score and its token, and what hash and logarithms compute."""


@triton.jit(do_not_specialize=["rows"])
def gumbel_argmax_kernel(
    logits,
    temperature,
    seeds,
    positions,
    min_p,
    request_of_row,
    sampled,
    rows,
    vocab,
    logits_stride,
    HAS_MIN_P: tl.constexpr,
    HAS_REQUESTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    lane = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        x_row = logits + row * logits_stride
        request = row
        if HAS_REQUESTS:
            request = tl.load(request_of_row + row).to(tl.int64)
        warmth = tl.load(temperature + request)
        # At temperature 0 noise counts for nothing, and min-p too.
        scale = 1.0 / tl.where(warmth == 0, 1.0, warmth)
        share = tl.where(warmth == 0, 0.0, 1.0)
        key, other = row_keys(tl.load(seeds + request), tl.load(positions + row))
        if HAS_MIN_P:
            floor = row_maximum(x_row, vocab, BLOCK) * scale + floor_of_min_p(tl.load(min_p + request))
            floor = tl.where(warmth == 0, float("-inf"), floor)
        best = tl.full([BLOCK], float("-inf"), dtype=tl.float32)
        token = tl.zeros([BLOCK], dtype=tl.int32)
        blocks = tl.cdiv(vocab, BLOCK)
        for block in range(blocks):
            column = block * BLOCK + lane
            value = tl.load(x_row + column, mask=column < vocab, other=float("-inf")).to(tl.float32) * scale
            score = value - share * logarithm(exponential(key, other, column))
            if HAS_MIN_P:
                score = tl.where(value < floor, float("-inf"), score)
            token = tl.where(score > best, column, token)
            best = tl.maximum(best, score)
        tl.store(sampled + row, best_lane(best, token).to(tl.int64))


def gumbel_argmax_triton(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    positions: torch.Tensor,
    min_p: torch.Tensor | None,
    request_of_row: torch.Tensor | None,
) -> torch.Tensor:
    """See :func:`ascend_kernels.gumbel_argmax`."""
    count, vocab = logits.shape
    sampled = logits.new_empty(count, dtype=torch.int64)
    rows = as_rows(logits)
    plan = plan_vocab(current_target(logits.device), count, vocab, LANE_BYTES, persistent=min_p is not None)
    launch(
        gumbel_argmax_kernel,
        (plan.programs,),
        rows,
        temperature,
        seeds,
        positions,
        min_p,
        request_of_row,
        sampled,
        count,
        vocab,
        rows.stride(0),
        HAS_MIN_P=min_p is not None,
        HAS_REQUESTS=request_of_row is not None,
        BLOCK=plan.block,
        num_warps=plan.warps,
    )
    return sampled
