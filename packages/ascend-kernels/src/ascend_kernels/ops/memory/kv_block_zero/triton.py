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
def kv_block_zero_kernel(
    table, blocks, tasks, programs, caches, WORDS: tl.constexpr, PIECES: tl.constexpr, BLOCK: tl.constexpr
):
    WORD_BYTES: tl.constexpr = 8 if WORDS else 1
    KIND: tl.constexpr = tl.int64 if WORDS else tl.int8
    POINTER: tl.constexpr = tl.pointer_type(KIND)
    zeros = tl.zeros([BLOCK], dtype=KIND)
    for task in range(tl.program_id(0), tasks, programs):
        cache = (task // PIECES) % caches
        block = tl.load(blocks + task // (PIECES * caches)).to(tl.int64)
        if block >= 0:
            address = tl.load(table + 3 * cache) + block * tl.load(table + 3 * cache + 1)
            elements = (tl.load(table + 3 * cache + 2) // WORD_BYTES).to(tl.int32)
            lane = (task % PIECES) * BLOCK + tl.arange(0, BLOCK)
            tl.store(address.to(POINTER) + lane, zeros, mask=lane < elements)


def kv_block_zero_triton(caches: list[torch.Tensor], blocks: torch.Tensor) -> None:
    """See :func:`ascend_kernels.kv_block_zero`."""
    blocks = blocks.contiguous()
    table, longest, element = cache_table(caches, blocks.device)
    plan = plan_segments(current_target(blocks.device), blocks.shape[0] * len(caches), longest // element, element)
    launch(
        kv_block_zero_kernel,
        (plan.programs,),
        table,
        blocks,
        plan.tasks,
        plan.programs,
        len(caches),
        WORDS=element == WORD,
        PIECES=plan.pieces,
        BLOCK=plan.block,
    )
