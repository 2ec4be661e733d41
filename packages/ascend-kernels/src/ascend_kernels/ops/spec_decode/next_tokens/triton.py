"""Triton kernel: a program takes whole requests."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import MAX_PROGRAMS, launch, next_power_of_two
from ascend_kernels.ops.sampling.rows.triton import as_rows
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["requests", "width", "vocab"])
def next_tokens_kernel(
    sampled,
    backup,
    discarded,
    tokens,
    counts,
    requests,
    width,
    vocab,
    sampled_stride,
    HAS_DISCARDED: tl.constexpr,
    WIDTH: tl.constexpr,
):
    lane = tl.arange(0, WIDTH)
    for request in range(tl.program_id(0).to(tl.int64), requests, tl.num_programs(0)):
        token = tl.load(sampled + request * sampled_stride + lane, mask=lane < width, other=-1).to(tl.int32)
        valid = tl.where((token >= 0) & (token < vocab), 1, 0)
        if HAS_DISCARDED:
            valid = tl.where(tl.load(discarded + request) != 0, 0, valid)
        last = tl.max(tl.where(valid > 0, lane, -1), axis=0)
        newest = tl.sum(tl.where(lane == last, token, 0), axis=0)
        tl.store(tokens + request, tl.where(last >= 0, newest, tl.load(backup + request).to(tl.int32)))
        tl.store(counts + request, tl.sum(valid, axis=0))


def next_tokens_triton(
    sampled: torch.Tensor, backup: torch.Tensor, discarded: torch.Tensor | None, vocab: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.next_tokens`."""
    requests, width = sampled.shape
    tokens, counts = (sampled.new_empty(requests, dtype=torch.int32) for _ in range(2))
    target = current_target(sampled.device)
    rows = as_rows(sampled)
    launch(
        next_tokens_kernel,
        (min(requests, target.vector_cores if target.kind == "ascend" else MAX_PROGRAMS),),
        rows,
        backup,
        None if discarded is None else discarded.view(torch.uint8),
        tokens,
        counts,
        requests,
        width,
        vocab,
        rows.stride(0),
        HAS_DISCARDED=discarded is not None,
        WIDTH=next_power_of_two(width),
        num_warps=1,
    )
    return tokens, counts
