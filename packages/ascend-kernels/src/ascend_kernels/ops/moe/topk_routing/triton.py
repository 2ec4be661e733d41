"""Triton kernel: one token's experts at a time, the best taken out one after another."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch, next_power_of_two
from ascend_kernels.ops.moe.topk_routing.plan import plan_routing
from ascend_kernels.target import current_target


@triton.jit
def largest(values):
    return tl.max(tl.max(values, axis=1), axis=0)


@triton.jit
def total(values):
    return tl.sum(tl.sum(values, axis=1), axis=0)


# Of equal numbers the first: NaN, which equals nothing, gives the last expert and shows in its weight.
@triton.jit
def first_of(matches, index, LAST: tl.constexpr):
    found = tl.where(matches, index, LAST)
    return tl.min(tl.min(found, axis=1), axis=0)


@triton.jit(do_not_specialize=["tokens"])
def topk_routing_kernel(
    logits,
    bias,
    weights,
    ids,
    tokens,
    row_stride,
    scale,
    SIGMOID: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    RENORMALISE: tl.constexpr,
    K: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EXPERTS: tl.constexpr,
    GROUPS: tl.constexpr,
    TOP_GROUPS: tl.constexpr,
    ROWS: tl.constexpr,
    SIZE: tl.constexpr,
):
    group = tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, SIZE)[None, :]
    expert = group * (EXPERTS // GROUPS) + lane
    inside = (group < GROUPS) & (lane < EXPERTS // GROUPS)
    if HAS_BIAS:
        shift = tl.load(bias + expert, mask=inside, other=0.0).to(tl.float32)
    slot = tl.arange(0, BLOCK_K)
    for token in range(tl.program_id(0).to(tl.int64), tokens, tl.num_programs(0)):
        value = tl.load(logits + token * row_stride + expert, mask=inside, other=0.0).to(tl.float32)
        if SIGMOID:
            scores = tl.sigmoid(value)
        else:
            value = tl.where(inside, value, float("-inf"))
            powers = tl.exp(value - largest(value))
            scores = powers / total(powers)
        choice = scores
        if HAS_BIAS:
            choice = scores + shift
        choice = tl.where(inside, choice, float("-inf"))
        if TOP_GROUPS < GROUPS:
            of_group = tl.max(choice, axis=1)[:, None]
            if HAS_BIAS and EXPERTS // GROUPS > 1:
                # A group counts as much as its best two experts together.
                best = tl.min(tl.where(choice == of_group, lane, SIZE - 1), axis=1)[:, None]
                second = tl.max(tl.where(lane == best, float("-inf"), choice), axis=1)[:, None]
                of_group = tl.where(group < GROUPS, of_group + second, float("-inf"))
            allowed = tl.zeros([ROWS, 1], dtype=tl.int32)
            for _ in tl.static_range(TOP_GROUPS):
                chosen = first_of(of_group == largest(of_group), group, GROUPS - 1)
                allowed = tl.where(group == chosen, 1, allowed)
                of_group = tl.where(group == chosen, float("-inf"), of_group)
            choice = tl.where(allowed == 1, choice, float("-inf"))
        chosen_scores = tl.zeros([BLOCK_K], dtype=tl.float32)
        chosen_ids = tl.zeros([BLOCK_K], dtype=tl.int32)
        # What is taken out is marked, not lowered: an expert outside the chosen groups is lower still.
        left = inside.to(tl.int32)
        for index in range(K):
            candidates = tl.where(left == 1, choice, float("-inf"))
            matches = (left == 1) & (candidates == largest(candidates))
            chosen = first_of(matches, expert, EXPERTS - 1)
            score = total(tl.where(expert == chosen, tl.where(inside, scores, 0.0), 0.0))
            chosen_scores = tl.where(slot == index, score, chosen_scores)
            chosen_ids = tl.where(slot == index, chosen, chosen_ids)
            left = tl.where(expert == chosen, 0, left)
        if RENORMALISE:
            chosen_scores /= tl.sum(chosen_scores, axis=0) + 1e-20
        tl.store(weights + token * K + slot, chosen_scores * scale, mask=slot < K)
        tl.store(ids + token * K + slot, chosen_ids, mask=slot < K)


def topk_routing_triton(
    logits: torch.Tensor,
    k: int,
    sigmoid: bool,
    bias: torch.Tensor | None,
    groups: int,
    top_groups: int,
    renormalise: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.topk_routing`."""
    tokens, experts = logits.shape
    weights = logits.new_empty(tokens, k, dtype=torch.float32)
    ids = logits.new_empty(tokens, k, dtype=torch.int32)
    if top_groups == groups:
        groups = top_groups = 1
    plan = plan_routing(current_target(logits.device), tokens, experts, groups)
    launch(
        topk_routing_kernel,
        (plan.programs,),
        logits,
        bias,
        weights,
        ids,
        tokens,
        logits.stride(0),
        scale,
        SIGMOID=sigmoid,
        HAS_BIAS=bias is not None,
        RENORMALISE=renormalise,
        K=k,
        BLOCK_K=next_power_of_two(k),
        EXPERTS=experts,
        GROUPS=groups,
        TOP_GROUPS=top_groups,
        ROWS=plan.groups,
        SIZE=plan.size,
        num_warps=plan.warps,
    )
    return weights, ids
