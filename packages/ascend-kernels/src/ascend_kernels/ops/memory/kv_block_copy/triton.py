"""Triton kernel: a piece of one block of one cache at a time."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.memory.segments.plan import plan_segments
from ascend_kernels.ops.memory.segments.table import WORD, cache_table
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks", "programs", "caches"])
def kv_block_copy_kernel(
    table, pairs, tasks, programs, caches, WORDS: tl.constexpr, PIECES: tl.constexpr, BLOCK: tl.constexpr
):
    WORD_BYTES: tl.constexpr = 8 if WORDS else 1
    POINTER: tl.constexpr = tl.pointer_type(tl.int64) if WORDS else tl.pointer_type(tl.int8)
    for task in range(tl.program_id(0), tasks, programs):
        pair = task // (PIECES * caches)
        cache = (task // PIECES) % caches
        begin = tl.load(pairs + 2 * pair).to(tl.int64)
        end = tl.load(pairs + 2 * pair + 1).to(tl.int64)
        if (begin >= 0) & (end >= 0):
            base = tl.load(table + 3 * cache)
            stride = tl.load(table + 3 * cache + 1)
            elements = (tl.load(table + 3 * cache + 2) // WORD_BYTES).to(tl.int32)
            lane = (task % PIECES) * BLOCK + tl.arange(0, BLOCK)
            tile = tl.load((base + begin * stride).to(POINTER) + lane, mask=lane < elements)
            tl.store((base + end * stride).to(POINTER) + lane, tile, mask=lane < elements)


def kv_block_copy_triton(caches: list[torch.Tensor], pairs: torch.Tensor) -> None:
    """See :func:`ascend_kernels.kv_block_copy`."""
    pairs = pairs.contiguous()
    table, longest, element = cache_table(caches, pairs.device)
    plan = plan_segments(current_target(pairs.device), pairs.shape[0] * len(caches), longest // element, element)
    launch(
        kv_block_copy_kernel,
        (plan.programs,),
        table,
        pairs,
        plan.tasks,
        plan.programs,
        len(caches),
        WORDS=element == WORD,
        PIECES=plan.pieces,
        BLOCK=plan.block,
    )
