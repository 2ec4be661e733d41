"""Triton kernel: how far each place of a text agrees, backwards, with its end; the first of the longest wins."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import MAX_PROGRAMS, launch, next_power_of_two
from ascend_kernels.ops.sampling.rows.triton import as_rows
from ascend_kernels.target import current_target

BLOCK = 1024


@triton.jit(do_not_specialize=["requests", "min_n", "max_n", "drafts", "max_length"])
def ngram_drafts_kernel(
    token_ids,
    lengths,
    draft_ids,
    counts,
    requests,
    min_n,
    max_n,
    drafts,
    max_length,
    tokens_stride,
    DRAFTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    lane = tl.arange(0, BLOCK)
    draft = tl.arange(0, DRAFTS)
    for request in range(tl.program_id(0).to(tl.int64), requests, tl.num_programs(0)):
        row = token_ids + request * tokens_stride
        length = tl.load(lengths + request).to(tl.int32)
        best = tl.zeros([BLOCK], dtype=tl.int32)
        place = tl.zeros([BLOCK], dtype=tl.int32)
        for start in range(0, length, BLOCK):
            follows = start + lane  # the token behind a possible match
            agreement = tl.zeros([BLOCK], dtype=tl.int32)
            alive = tl.where((follows >= 1) & (follows < length), 1, 0)
            for back in range(tl.minimum(max_n, length)):
                wanted = tl.load(row + length - 1 - back).to(tl.int32)
                inside = (follows - 1 - back >= 0) & (follows < length)
                token = tl.load(row + follows - 1 - back, mask=inside, other=-1).to(tl.int32)
                alive = tl.where(inside & (token == wanted), alive, 0)
                agreement += alive
            place = tl.where(agreement > best, follows, place)
            best = tl.maximum(best, agreement)
        longest = tl.max(best, axis=0)
        first = tl.min(tl.where(best == longest, place, 2147483647), axis=0)
        count = tl.minimum(tl.minimum(drafts, length - first), max_length - length)
        count = tl.where(longest >= min_n, tl.maximum(count, 0), 0)
        # Addresses stay within the text whatever was found.
        at = tl.maximum(tl.minimum(first + draft, length - 1), 0)
        ids = tl.load(row + at).to(tl.int32)
        tl.store(draft_ids + request * drafts + draft, tl.where(draft < count, ids, -1), mask=draft < drafts)
        tl.store(counts + request, count)


def ngram_drafts_triton(
    token_ids: torch.Tensor, lengths: torch.Tensor, min_n: int, max_n: int, drafts: int, max_length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.ngram_drafts`."""
    requests = token_ids.shape[0]
    ids = token_ids.new_empty((requests, drafts), dtype=torch.int32)
    counts = token_ids.new_empty(requests, dtype=torch.int32)
    target = current_target(token_ids.device)
    rows = as_rows(token_ids)
    launch(
        ngram_drafts_kernel,
        (min(requests, target.vector_cores if target.kind == "ascend" else MAX_PROGRAMS),),
        rows,
        lengths,
        ids,
        counts,
        requests,
        min_n,
        max_n,
        drafts,
        max_length,
        rows.stride(0),
        DRAFTS=next_power_of_two(drafts),
        BLOCK=min(BLOCK, next_power_of_two(token_ids.shape[1])),
    )
    return ids, counts
