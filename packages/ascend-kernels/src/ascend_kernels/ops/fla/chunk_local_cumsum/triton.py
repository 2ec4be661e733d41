"""Triton kernel: prefix sums along the tokens of a chunk, a slice of channels at a time."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.chunk_local_cumsum.plan import CumsumPlan, plan_chunk_local_cumsum
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks", "programs"])
def chunk_local_cumsum_kernel(
    values,
    sums,
    first,
    end,
    scale,
    tasks,
    programs,
    channels,
    SLICES: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
    REVERSE: tl.constexpr,
):
    row = tl.arange(0, CHUNK)[:, None]
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        chunk = task // SLICES
        column = (task - chunk * SLICES) * BLOCK + tl.arange(0, BLOCK)[None, :]
        begin = tl.load(first + chunk)
        length = tl.load(end + chunk) - begin
        if length > 0:
            base = begin.to(tl.int64) * channels
            inside = (row < length) & (column < channels)
            tile = tl.load(values + base + row * channels + column, mask=inside, other=0.0).to(tl.float32)
            total = tl.cumsum(tile, axis=0)
            if REVERSE:
                total = tl.sum(tile, axis=0)[None, :] - total + tile
            tl.store(sums + base + row * channels + column, total * scale, mask=inside)


def chunk_local_cumsum_triton(
    values: torch.Tensor,
    first: torch.Tensor,
    end: torch.Tensor,
    chunk: int,
    reverse: bool,
    scale: float,
    plan: CumsumPlan | None = None,
) -> torch.Tensor:
    """See :func:`ascend_kernels.chunk_local_cumsum`."""
    values = values.contiguous()
    sums = torch.empty_like(values, dtype=torch.float32)
    if values.numel() == 0:
        return sums
    channels = values.numel() // values.shape[0]
    if plan is None:
        plan = plan_chunk_local_cumsum(first.shape[0], channels, chunk, current_target(values.device))
    launch(
        chunk_local_cumsum_kernel,
        (plan.programs,),
        values,
        sums,
        first,
        end,
        scale,
        plan.tasks,
        plan.programs,
        channels,
        SLICES=plan.slices,
        CHUNK=chunk,
        BLOCK=plan.block,
        REVERSE=reverse,
        num_warps=plan.warps,
    )
    return sums
