"""Triton kernel: an atomic addition per token; ids outside the vocabulary count in a column of their own."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.sampling.rows.triton import as_rows
from ascend_kernels.ops.sampling.token_counts.plan import plan_token_counts
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["rows", "length", "vocab"])
def token_counts_kernel(tokens, counts, rows, length, vocab, tokens_stride, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    tiles_per_row = tl.cdiv(length, BLOCK)
    for tile in range(tl.program_id(0), rows * tiles_per_row, tl.num_programs(0)):
        row = tile // tiles_per_row
        place = (tile - row * tiles_per_row) * BLOCK + lane
        inside = place < length
        # Narrow first: a vector core compares 64-bit integers one by one.
        token = tl.load(tokens + row.to(tl.int64) * tokens_stride + place, mask=inside, other=-1).to(tl.int32)
        token = tl.where((token >= 0) & (token < vocab), token, vocab)
        one = tl.zeros([BLOCK], dtype=tl.int32) + 1
        tl.atomic_add(counts + row.to(tl.int64) * (vocab + 1) + token, one, mask=inside, sem="relaxed")


def token_counts_triton(tokens: torch.Tensor, vocab: int) -> torch.Tensor:
    """See :func:`ascend_kernels.token_counts`."""
    rows, length = tokens.shape
    counts = tokens.new_zeros((rows, vocab + 1), dtype=torch.int32)
    plan = plan_token_counts(current_target(tokens.device), rows, length)
    if plan.programs:
        sequences = as_rows(tokens)
        launch(
            token_counts_kernel,
            (plan.programs,),
            sequences,
            counts,
            rows,
            length,
            vocab,
            sequences.stride(0),
            BLOCK=plan.block,
        )
    return counts[:, :vocab].contiguous()
