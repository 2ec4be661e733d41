"""Triton kernel: one pass over a row of probabilities, noise is made where they are read."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.sampling.noise.triton import exponential, row_keys
from ascend_kernels.ops.sampling.rows.plan import plan_vocab
from ascend_kernels.ops.sampling.rows.triton import as_rows, best_lane
from ascend_kernels.target import current_target

LANE_BYTES = 96
"""Per column: two buffers of both probabilities, the best score and its token, and what the hash computes."""


@triton.jit(do_not_specialize=["rows"])
def recovered_tokens_kernel(
    target_probs,
    draft_probs,
    draft_token_ids,
    temperature,
    seeds,
    positions,
    request_of_row,
    target_indices,
    recovered,
    rows,
    columns,
    target_stride,
    draft_stride,
    indices_stride,
    HAS_DRAFT_PROBS: tl.constexpr,
    HAS_INDICES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    lane = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        request = tl.load(request_of_row + row).to(tl.int64)
        greedy = tl.load(temperature + request) == 0
        key, other = row_keys(tl.load(seeds + request), tl.load(positions + row))
        draft = tl.load(draft_token_ids + row).to(tl.int32)
        best = tl.zeros([BLOCK], dtype=tl.float32) - 2.0
        winner = tl.zeros([BLOCK], dtype=tl.int32)
        for start in range(0, columns, BLOCK):
            column = start + lane
            inside = column < columns
            probability = tl.load(target_probs + row * target_stride + column, mask=inside, other=0.0)
            token = column
            if HAS_INDICES:
                token = tl.load(target_indices + row * indices_stride + column, mask=inside, other=0).to(tl.int32)
            if HAS_DRAFT_PROBS:
                proposed = tl.load(draft_probs + row * draft_stride + token, mask=inside, other=0.0)
            else:
                proposed = tl.where(token == draft, probability, 0.0)
            residual = tl.where(draft < 0, probability, tl.maximum(probability - proposed, 0.0))
            score = tl.where(greedy, probability, residual / exponential(key, other, token))
            score = tl.where(inside, score, -1.0)
            better = score > best
            if HAS_INDICES:  # candidates come in any order; of tied ones the lowest id wins
                better = better | ((score == best) & (token < winner))
            winner = tl.where(better, token, winner)
            best = tl.maximum(best, score)
        tl.store(recovered + row, best_lane(best, winner))


def recovered_tokens_triton(
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor | None,
    draft_token_ids: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    positions: torch.Tensor,
    request_of_row: torch.Tensor,
    target_indices: torch.Tensor | None,
) -> torch.Tensor:
    """See :func:`ascend_kernels.recovered_tokens`."""
    count, columns = target_probs.shape
    recovered = target_probs.new_empty(count, dtype=torch.int32)
    targets = as_rows(target_probs)
    drafts = None if draft_probs is None else as_rows(draft_probs)
    indices = None if target_indices is None else as_rows(target_indices)
    plan = plan_vocab(current_target(target_probs.device), count, columns, LANE_BYTES)
    launch(
        recovered_tokens_kernel,
        (plan.programs,),
        targets,
        drafts,
        draft_token_ids,
        temperature,
        seeds,
        positions,
        request_of_row,
        indices,
        recovered,
        count,
        columns,
        targets.stride(0),
        0 if drafts is None else drafts.stride(0),
        0 if indices is None else indices.stride(0),
        HAS_DRAFT_PROBS=drafts is not None,
        HAS_INDICES=indices is not None,
        BLOCK=plan.block,
        num_warps=plan.warps,
    )
    return recovered
