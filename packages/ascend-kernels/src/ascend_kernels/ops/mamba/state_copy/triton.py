"""Triton kernel: a piece of one slot at a time."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.mamba.state_copy.plan import plan_state_copy
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks", "programs"])
def state_copy_kernel(
    state,
    source,
    target,
    stride,
    tasks,
    programs,
    ELEMENTS: tl.constexpr,
    PIECES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    for task in range(tl.program_id(0), tasks, programs):
        copy = task // PIECES
        lane = (task - copy * PIECES) * BLOCK + tl.arange(0, BLOCK)
        begin = tl.load(source + copy).to(tl.int64)
        end = tl.load(target + copy).to(tl.int64)
        if (begin >= 0) & (end >= 0):
            tile = tl.load(state + begin * stride + lane, mask=lane < ELEMENTS)
            tl.store(state + end * stride + lane, tile, mask=lane < ELEMENTS)


def state_copy_triton(state: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> None:
    """See :func:`ascend_kernels.state_copy`."""
    elements = state[0].numel()
    plan = plan_state_copy(source.shape[0], elements, state.element_size(), current_target(state.device))
    launch(
        state_copy_kernel,
        (plan.programs,),
        state,
        source,
        target,
        state.stride(0),
        plan.tasks,
        plan.programs,
        ELEMENTS=elements,
        PIECES=plan.pieces,
        BLOCK=plan.block,
    )
