"""Triton kernel: a program verifies the drafts of a request one after the other, then writes its row of tokens."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch, next_power_of_two
from ascend_kernels.ops.sampling.rows.triton import as_rows
from ascend_kernels.ops.spec_decode.rejection_sample.plan import plan_rejection
from ascend_kernels.target import current_target


@triton.jit
def candidate_probability(probs_row, indices_row, token, candidates, BLOCK: tl.constexpr):
    """The probability of a token that is among the candidates of a row, 0 if it is not."""
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, candidates, BLOCK):
        column = start + lane
        index = tl.load(indices_row + column, mask=column < candidates, other=-1).to(tl.int32)
        probability = tl.load(probs_row + column, mask=column < candidates, other=0.0)
        total += tl.where(index == token, probability, 0.0)
    return tl.sum(total, axis=0)


@triton.jit(do_not_specialize=["requests", "columns", "rows", "width"])
def rejection_sample_kernel(
    draft_token_ids,
    cu_num_drafts,
    target_probs,
    draft_probs,
    recovered,
    bonus,
    uniform,
    temperature,
    target_indices,
    entropy,
    emitted,
    requests,
    columns,
    rows,
    width,
    target_stride,
    draft_stride,
    indices_stride,
    posterior_threshold,
    posterior_alpha,
    HAS_DRAFT_PROBS: tl.constexpr,
    HAS_INDICES: tl.constexpr,
    HAS_ENTROPY: tl.constexpr,
    TOGETHER: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    lane = tl.arange(0, WIDTH)
    for request in range(tl.program_id(0), requests, tl.num_programs(0)):
        before = tl.load(cu_num_drafts + tl.where(request == 0, 0, request - 1))
        begin = tl.where(request == 0, 0, before)
        drafts = tl.load(cu_num_drafts + request) - begin
        greedy = tl.load(temperature + request) == 0
        accepted = 0
        alive = 1
        joint = 1.0
        drawn = 1.0
        for index in range(drafts):
            row = (begin + index).to(tl.int64)
            draft = tl.load(draft_token_ids + row).to(tl.int32)
            # A placeholder reads the first entry of its row, which is valid, and is rejected whatever is there.
            token = tl.maximum(draft, 0)
            if HAS_INDICES:
                ratio = candidate_probability(
                    target_probs + row * target_stride, target_indices + row * indices_stride, token, columns, BLOCK
                )
            else:
                ratio = tl.load(target_probs + row * target_stride + token)
            if HAS_DRAFT_PROBS:
                proposed = tl.load(draft_probs + row * draft_stride + token)
                ratio = tl.where(proposed > 0, ratio / tl.where(proposed > 0, proposed, 1.0), 0.0)
            ratio = tl.where(draft >= 0, ratio, 0.0)
            bar = tl.load(uniform + row)
            if HAS_ENTROPY:
                bar *= tl.minimum(tl.exp(-posterior_alpha * tl.load(entropy + row)), posterior_threshold)
            matches = draft == tl.load(recovered + row)
            if TOGETHER:
                joint = tl.minimum(joint * ratio, 1.0)
                drawn *= bar
                passes = (joint > 0) & (joint >= drawn)
                random = tl.where(passes, index + 1, accepted)
            else:
                passes = (ratio > 0) & (ratio >= bar)
                random = accepted + tl.where(passes, alive, 0)
            accepted = tl.where(greedy, accepted + tl.where(matches, alive, 0), random)
            alive = tl.where(tl.where(greedy, matches, passes), alive, 0)
        all_accepted = accepted == drafts
        rejected = tl.load(recovered + tl.minimum(begin + accepted, rows - 1)).to(tl.int32)
        last = tl.where(all_accepted, tl.load(bonus + request).to(tl.int32), rejected)
        ids = tl.load(draft_token_ids + begin + lane, mask=lane < drafts, other=-1).to(tl.int32)
        ids = tl.where(lane < accepted, ids, tl.where(lane == accepted, last, -1))
        tl.store(emitted + request * width + lane, ids, mask=lane < width)


def rejection_sample_triton(
    draft_token_ids: torch.Tensor,
    cu_num_drafts: torch.Tensor,
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor | None,
    recovered: torch.Tensor,
    bonus: torch.Tensor,
    uniform: torch.Tensor,
    temperature: torch.Tensor,
    target_indices: torch.Tensor | None,
    entropy: torch.Tensor | None,
    max_drafts: int,
    block: bool,
    posterior_threshold: float,
    posterior_alpha: float,
) -> torch.Tensor:
    """See :func:`ascend_kernels.rejection_sample`."""
    requests, rows, width = temperature.shape[0], draft_token_ids.shape[0], max_drafts + 1
    emitted = draft_token_ids.new_empty((requests, width), dtype=torch.int32)
    if rows == 0:  # nothing is verified; the kernel reads one recovered token all the same
        recovered = bonus
    targets = as_rows(target_probs)
    drafts = None if draft_probs is None else as_rows(draft_probs)
    indices = None if target_indices is None else as_rows(target_indices)
    plan = plan_rejection(current_target(draft_token_ids.device), requests, targets.shape[1])
    launch(
        rejection_sample_kernel,
        (plan.programs,),
        draft_token_ids,
        cu_num_drafts,
        targets,
        drafts,
        recovered,
        bonus,
        uniform,
        temperature,
        indices,
        entropy,
        emitted,
        requests,
        targets.shape[1],
        max(rows, 1),
        width,
        targets.stride(0),
        0 if drafts is None else drafts.stride(0),
        0 if indices is None else indices.stride(0),
        posterior_threshold,
        posterior_alpha,
        HAS_DRAFT_PROBS=drafts is not None,
        HAS_INDICES=indices is not None,
        HAS_ENTROPY=entropy is not None,
        TOGETHER=block,
        WIDTH=next_power_of_two(width),
        BLOCK=plan.block,
        num_warps=1,
    )
    return emitted
