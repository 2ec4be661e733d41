"""Triton kernel: a piece of one row of logits at a time."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import ceil_div, launch
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.ops.structured.grammar_bitmask.plan import plan_bitmask
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks"])
def grammar_bitmask_kernel(
    logits,
    bitmask,
    rows,
    tasks,
    logits_row,
    bitmask_row,
    VOCABULARY: tl.constexpr,
    WORDS: tl.constexpr,
    PIECES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    bit = tl.arange(0, 32)[None, :]
    for task in range(tl.program_id(0), tasks, tl.num_programs(0)):
        index = as_int64(task // PIECES)
        word = (task % PIECES) * BLOCK + tl.arange(0, BLOCK)
        row = tl.load(rows + index).to(tl.int64)
        if row >= 0:
            mask = tl.load(bitmask + index * bitmask_row + word, mask=word < WORDS, other=0)
            token = word[:, None] * 32 + bit
            inside = token < VOCABULARY
            place = logits + row * logits_row + token
            value = tl.load(place, mask=inside, other=0.0).to(tl.float32)
            allowed = (mask[:, None] >> bit) & 1
            result = tl.where(allowed == 1, value, float("-inf"))
            tl.store(place, result.to(logits.dtype.element_ty), mask=inside)


def grammar_bitmask_triton(logits: torch.Tensor, bitmask: torch.Tensor, rows: torch.Tensor) -> None:
    """See :func:`ascend_kernels.grammar_bitmask`."""
    words = ceil_div(logits.shape[1], 32)
    plan = plan_bitmask(current_target(logits.device), rows.shape[0], max(words, 1))
    launch(
        grammar_bitmask_kernel,
        (plan.programs if words else 0,),
        logits,
        bitmask,
        rows,
        plan.tasks,
        logits.stride(0),
        bitmask.stride(0),
        VOCABULARY=logits.shape[1],
        WORDS=words,
        PIECES=plan.pieces,
        BLOCK=plan.words,
    )
