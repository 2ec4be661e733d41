"""Triton kernel: logits divided in place; with min-p a row is read for its maximum first."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.sampling.rows.plan import plan_vocab
from ascend_kernels.ops.sampling.rows.triton import floor_of_min_p, row_maximum
from ascend_kernels.target import current_target

LANE_BYTES = 32
"""Per column: two buffers of what is read and written, and what one step computes."""


@triton.jit(do_not_specialize=["rows"])
def scale_logits_kernel(
    logits,
    temperature,
    min_p,
    request_of_row,
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
        scale = tl.where(warmth == 0, 1.0, warmth)
        if HAS_MIN_P:
            floor = row_maximum(x_row, vocab, BLOCK) / scale + floor_of_min_p(tl.load(min_p + request))
        blocks = tl.cdiv(vocab, BLOCK)
        for block in range(blocks):  # from the end, which is still in the cache
            column = (blocks - 1 - block) * BLOCK + lane
            value = tl.load(x_row + column, mask=column < vocab, other=0.0).to(tl.float32) / scale
            if HAS_MIN_P:
                value = tl.where(value < floor, float("-inf"), value)
            tl.store(x_row + column, value.to(logits.dtype.element_ty), mask=column < vocab)


def scale_logits_triton(
    logits: torch.Tensor, temperature: torch.Tensor, min_p: torch.Tensor | None, request_of_row: torch.Tensor | None
) -> None:
    """See :func:`ascend_kernels.scale_logits`."""
    count, vocab = logits.shape
    plan = plan_vocab(current_target(logits.device), count, vocab, LANE_BYTES, persistent=min_p is not None)
    launch(
        scale_logits_kernel,
        (plan.programs,),
        logits,
        temperature,
        min_p,
        request_of_row,
        count,
        vocab,
        logits.stride(0),
        HAS_MIN_P=min_p is not None,
        HAS_REQUESTS=request_of_row is not None,
        BLOCK=plan.block,
        num_warps=plan.warps,
    )
