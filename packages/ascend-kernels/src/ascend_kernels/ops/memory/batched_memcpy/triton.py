"""Triton kernel: each program strides over its share of one copy, in words where address and size allow."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.memory.batched_memcpy.plan import plan_memcpy
from ascend_kernels.target import current_target


@triton.jit
def copy_share(source, target, elements, start, step, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Every ``step``-th element from ``start`` on, ``BLOCK`` in a row each time."""
    begin = source.to(tl.pointer_type(KIND))
    end = target.to(tl.pointer_type(KIND))
    for first in range(start, elements, step):
        lane = first + tl.arange(0, BLOCK)
        tl.store(end + lane, tl.load(begin + lane, mask=lane < elements), mask=lane < elements)


@triton.jit(do_not_specialize=["tasks", "programs", "shares"])
def batched_memcpy_kernel(sources, targets, sizes, tasks, programs, shares, BLOCK: tl.constexpr):
    for task in range(tl.program_id(0), tasks, programs):
        copy = task // shares
        source = tl.load(sources + copy)
        target = tl.load(targets + copy)
        size = tl.load(sizes + copy)
        start = (task % shares) * BLOCK
        step = shares * BLOCK
        if ((source | target | size) & 7) == 0:
            copy_share(source, target, (size // 8).to(tl.int32), start, step, tl.int64, BLOCK)
        else:
            copy_share(source, target, size.to(tl.int32), start, step, tl.int8, BLOCK)


def batched_memcpy_triton(sources: torch.Tensor, targets: torch.Tensor, sizes: torch.Tensor) -> None:
    """See :func:`ascend_kernels.batched_memcpy`."""
    plan = plan_memcpy(current_target(sources.device), sources.shape[0])
    launch(
        batched_memcpy_kernel,
        (plan.programs,),
        sources.contiguous(),
        targets.contiguous(),
        sizes.contiguous(),
        plan.tasks,
        plan.programs,
        plan.shares,
        BLOCK=plan.block,
    )
