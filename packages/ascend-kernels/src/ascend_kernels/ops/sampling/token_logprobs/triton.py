"""Triton kernel: one pass over a row gives its sum of exponentials and the rank of the first token."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch, next_power_of_two
from ascend_kernels.ops.sampling.rows.plan import plan_vocab
from ascend_kernels.ops.sampling.rows.triton import LOWEST, add_exponentials, as_rows, join_exponentials
from ascend_kernels.target import current_target

LANE_BYTES = 56
"""Per column: two buffers of the logits, the running maximum, sum and count, and what one step computes."""


@triton.jit(do_not_specialize=["rows", "tokens"])
def token_logprobs_kernel(
    logits,
    token_ids,
    logprobs,
    ranks,
    rows,
    vocab,
    tokens,
    logits_stride,
    ids_stride,
    BLOCK: tl.constexpr,
    TOKENS: tl.constexpr,
):
    lane = tl.arange(0, BLOCK)
    token = tl.arange(0, TOKENS)
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        x_row = logits + row * logits_stride
        first = tl.load(token_ids + row * ids_stride).to(tl.int32)
        known = (first >= 0) & (first < vocab)
        chosen = tl.load(x_row + tl.where(known, first, 0)).to(tl.float32)
        chosen = tl.where(known, chosen, float("-inf"))
        largest = tl.zeros([BLOCK], dtype=tl.float32) + LOWEST
        sums = tl.zeros([BLOCK], dtype=tl.float32)
        ahead = tl.zeros([BLOCK], dtype=tl.int32)
        for start in range(0, vocab, BLOCK):
            column = start + lane
            value = tl.load(x_row + column, mask=column < vocab, other=float("-inf")).to(tl.float32)
            largest, sums = add_exponentials(largest, sums, value)
            ahead += ((value >= chosen) & (column < vocab)).to(tl.int32)
        top, total = join_exponentials(largest, sums)
        tl.store(ranks + row, tl.sum(ahead, axis=0))
        ids = tl.load(token_ids + row * ids_stride + token, mask=token < tokens, other=-1).to(tl.int32)
        inside = (ids >= 0) & (ids < vocab)
        value = tl.load(x_row + tl.where(inside, ids, 0), mask=inside, other=float("-inf")).to(tl.float32)
        tl.store(logprobs + row * tokens + token, value - top - tl.log(total), mask=token < tokens)


def token_logprobs_triton(logits: torch.Tensor, token_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.token_logprobs`."""
    count, vocab = logits.shape
    tokens = token_ids.shape[1]
    logprobs = logits.new_empty((count, tokens), dtype=torch.float32)
    ranks = logits.new_empty(count, dtype=torch.int32)
    rows, ids = as_rows(logits), as_rows(token_ids)
    plan = plan_vocab(current_target(logits.device), count, vocab, LANE_BYTES)
    launch(
        token_logprobs_kernel,
        (plan.programs,),
        rows,
        ids,
        logprobs,
        ranks,
        count,
        vocab,
        tokens,
        rows.stride(0),
        ids.stride(0),
        BLOCK=plan.block,
        TOKENS=next_power_of_two(tokens),
        num_warps=plan.warps,
    )
    return logprobs, ranks
