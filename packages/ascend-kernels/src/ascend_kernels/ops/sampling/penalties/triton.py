"""Triton kernel: counts are read beside the logits; the few drafts before a row are counted where it is read."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.sampling.rows.plan import plan_vocab
from ascend_kernels.target import current_target

LANE_BYTES = 88
"""Per column: two buffers of logits in and out and of both counts, and what one step computes."""


@triton.jit(do_not_specialize=["rows"])
def penalties_kernel(
    logits,
    prompt_counts,
    output_counts,
    repetition,
    frequency,
    presence,
    request_of_row,
    input_ids,
    draft_index,
    rows,
    vocab,
    logits_stride,
    prompt_stride,
    output_stride,
    HAS_REQUESTS: tl.constexpr,
    HAS_DRAFTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    lane = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        request = row
        if HAS_REQUESTS:
            request = tl.load(request_of_row + row).to(tl.int64)
        factor = tl.load(repetition + request)
        per_count = tl.load(frequency + request)
        once = tl.load(presence + request)
        if HAS_DRAFTS:
            drafts = tl.load(draft_index + row).to(tl.int32)
        for start in range(0, vocab, BLOCK):
            column = start + lane
            inside = column < vocab
            value = tl.load(logits + row * logits_stride + column, mask=inside, other=0.0).to(tl.float32)
            prompt = tl.load(prompt_counts + request * prompt_stride + column, mask=inside, other=0)
            count = tl.load(output_counts + request * output_stride + column, mask=inside, other=0)
            if HAS_DRAFTS:
                for draft in range(drafts):
                    token = tl.load(input_ids + row - draft).to(tl.int32)
                    count += (column == token).to(tl.int32)
            repeated = tl.where(value > 0, value / factor, value * factor)
            value = tl.where((count > 0) | (prompt > 0), repeated, value)
            value = value - per_count * count.to(tl.float32) - tl.where(count > 0, once, 0.0)
            tl.store(logits + row * logits_stride + column, value.to(logits.dtype.element_ty), mask=inside)


def penalties_triton(
    logits: torch.Tensor,
    prompt_counts: torch.Tensor,
    output_counts: torch.Tensor,
    repetition: torch.Tensor,
    frequency: torch.Tensor,
    presence: torch.Tensor,
    request_of_row: torch.Tensor | None,
    input_ids: torch.Tensor | None,
    draft_index: torch.Tensor | None,
) -> None:
    """See :func:`ascend_kernels.apply_penalties`."""
    count, vocab = logits.shape
    plan = plan_vocab(current_target(logits.device), count, vocab, LANE_BYTES)
    launch(
        penalties_kernel,
        (plan.programs,),
        logits,
        prompt_counts,
        output_counts,
        repetition,
        frequency,
        presence,
        request_of_row,
        input_ids,
        draft_index,
        count,
        vocab,
        logits.stride(0),
        prompt_counts.stride(0),
        output_counts.stride(0),
        HAS_REQUESTS=request_of_row is not None,
        HAS_DRAFTS=draft_index is not None,
        BLOCK=plan.block,
        num_warps=plan.warps,
    )
