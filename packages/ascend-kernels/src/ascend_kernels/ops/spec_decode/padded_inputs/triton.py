"""Triton kernel: a block of requests at a time."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, launch
from ascend_kernels.target import current_target

BLOCK = 256


@triton.jit(do_not_specialize=["requests"])
def padded_inputs_kernel(
    cu_num_drafts, valid_counts, query_start_loc, indices, rejected, requests, BLOCK: tl.constexpr
):
    lane = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:  # the first request has none before it, whose count the others read
        drafts = tl.load(cu_num_drafts).to(tl.int32)
        dropped = tl.where(drafts > 0, drafts + 1 - tl.load(valid_counts).to(tl.int32), 0)
        tl.store(rejected, dropped)
        tl.store(indices, tl.load(query_start_loc + 1).to(tl.int32) - 1 - dropped)
    for start in range(tl.program_id(0) * BLOCK, requests - 1, tl.num_programs(0) * BLOCK):
        before = start + lane
        inside = before < requests - 1
        drafts = tl.load(cu_num_drafts + before + 1, mask=inside, other=0).to(tl.int32)
        drafts -= tl.load(cu_num_drafts + before, mask=inside, other=0).to(tl.int32)
        valid = tl.load(valid_counts + before + 1, mask=inside, other=0).to(tl.int32)
        behind = tl.load(query_start_loc + before + 2, mask=inside, other=0).to(tl.int32)
        dropped = tl.where(drafts > 0, drafts + 1 - valid, 0)
        tl.store(rejected + before + 1, dropped, mask=inside)
        tl.store(indices + before + 1, behind - 1 - dropped, mask=inside)


def padded_inputs_triton(
    cu_num_drafts: torch.Tensor, valid_counts: torch.Tensor, query_start_loc: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.padded_inputs`."""
    requests = cu_num_drafts.shape[0]
    indices, rejected = (cu_num_drafts.new_empty(requests, dtype=torch.int32) for _ in range(2))
    target = current_target(cu_num_drafts.device)
    limit = target.vector_cores if target.kind == "ascend" else MAX_PROGRAMS
    launch(
        padded_inputs_kernel,
        (min(ceil_div(requests, BLOCK), limit),),
        cu_num_drafts,
        valid_counts,
        query_start_loc,
        indices,
        rejected,
        requests,
        BLOCK=BLOCK,
    )
    return indices, rejected
