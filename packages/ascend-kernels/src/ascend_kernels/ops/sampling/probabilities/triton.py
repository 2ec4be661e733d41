"""Triton kernel: a row is read once if it fits, else once for its sum and once more, backwards, for its values."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.sampling.rows.plan import plan_vocab
from ascend_kernels.ops.sampling.rows.triton import LOWEST, add_exponentials, as_rows, join_exponentials
from ascend_kernels.target import current_target

LANE_BYTES = 40
"""Per column: two buffers of what is read and written, the running maximum and sum, and what one step computes."""


@triton.jit
def normalised(value, top, total, LOG: tl.constexpr):
    if LOG:
        return value - top - tl.log(total)
    return tl.exp(value - top) / total


@triton.jit(do_not_specialize=["rows"])
def probabilities_kernel(
    logits,
    temperature,
    result,
    rows,
    vocab,
    logits_stride,
    LOG: tl.constexpr,
    HAS_TEMPERATURE: tl.constexpr,
    BLOCK: tl.constexpr,
    ONE_PASS: tl.constexpr,
):
    lane = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        x_row = logits + row * logits_stride
        y_row = result + row * vocab
        scale = 1.0
        if HAS_TEMPERATURE:
            warmth = tl.load(temperature + row)
            scale = tl.where(warmth == 0, 1.0, warmth)
        if ONE_PASS:
            value = tl.load(x_row + lane, mask=lane < vocab, other=float("-inf")).to(tl.float32) / scale
            top = tl.max(value, axis=0)
            total = tl.sum(tl.exp(value - top), axis=0)
            tl.store(y_row + lane, normalised(value, top, total, LOG), mask=lane < vocab)
        else:
            largest = tl.zeros([BLOCK], dtype=tl.float32) + LOWEST
            sums = tl.zeros([BLOCK], dtype=tl.float32)
            for start in range(0, vocab, BLOCK):
                column = start + lane
                value = tl.load(x_row + column, mask=column < vocab, other=float("-inf")).to(tl.float32) / scale
                largest, sums = add_exponentials(largest, sums, value)
            top, total = join_exponentials(largest, sums)
            blocks = tl.cdiv(vocab, BLOCK)
            for block in range(blocks):  # from the end, which is still in the cache
                column = (blocks - 1 - block) * BLOCK + lane
                value = tl.load(x_row + column, mask=column < vocab, other=float("-inf")).to(tl.float32) / scale
                tl.store(y_row + column, normalised(value, top, total, LOG), mask=column < vocab)


def probabilities_triton(logits: torch.Tensor, temperature: torch.Tensor | None, log: bool) -> torch.Tensor:
    """See :func:`ascend_kernels.probabilities`."""
    result = torch.empty_like(logits, dtype=torch.float32, memory_format=torch.contiguous_format)
    if result.numel() == 0:
        return result
    rows = as_rows(logits)
    count, vocab = rows.shape
    plan = plan_vocab(current_target(logits.device), count, vocab, LANE_BYTES, persistent=True)
    launch(
        probabilities_kernel,
        (plan.programs,),
        rows,
        temperature,
        result,
        count,
        vocab,
        rows.stride(0),
        LOG=log,
        HAS_TEMPERATURE=temperature is not None,
        BLOCK=plan.block,
        ONE_PASS=plan.block >= vocab,
        num_warps=plan.warps,
    )
    return result
