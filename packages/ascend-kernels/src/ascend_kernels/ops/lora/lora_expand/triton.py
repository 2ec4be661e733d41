"""Triton kernel: some columns of one token's result at a time."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.ops.lora.lora_shrink.plan import plan_lora
from ascend_kernels.ops.lora.lora_shrink.triton import matrix_times_vector
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks"])
def lora_expand_kernel(
    y,
    h,
    b,
    adapters,
    tasks,
    y_row,
    h_row,
    WIDTH: tl.constexpr,
    RANK: tl.constexpr,
    SLICES: tl.constexpr,
    BR: tl.constexpr,
    BC: tl.constexpr,
):
    for task in range(tl.program_id(0), tasks, tl.num_programs(0)):
        token = as_int64(task // SLICES)
        row = (task % SLICES) * BR + tl.arange(0, BR)
        adapter = tl.load(adapters + token).to(tl.int64)
        if adapter >= 0:
            added = matrix_times_vector(b + adapter * (WIDTH * RANK), h + token * h_row, row, WIDTH, RANK, BR, BC)
            before = tl.load(y + token * y_row + row, mask=row < WIDTH, other=0.0).to(tl.float32)
            tl.store(y + token * y_row + row, (before + added).to(y.dtype.element_ty), mask=row < WIDTH)


def lora_expand_triton(y: torch.Tensor, h: torch.Tensor, b: torch.Tensor, adapters: torch.Tensor, offset: int) -> None:
    """See :func:`ascend_kernels.lora_expand`."""
    tokens, width, rank = y.shape[0], b.shape[1], b.shape[2]
    if b.numel() == 0:
        return
    plan = plan_lora(current_target(y.device), tokens, width, rank)
    launch(
        lora_expand_kernel,
        (plan.programs,),
        y[:, offset:],
        h,
        b,
        adapters,
        plan.tasks,
        y.stride(0),
        h.stride(0),
        WIDTH=width,
        RANK=rank,
        SLICES=plan.slices,
        BR=plan.rows,
        BC=plan.columns,
    )
