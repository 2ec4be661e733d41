"""Triton kernel: some rows at a time, their parts one after another."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.attention.merge_attention.plan import plan_merge
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["rows", "tiles"])
def merge_attention_kernel(
    outputs,
    lses,
    output,
    lse,
    rows,
    tiles,
    PARTS: tl.constexpr,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    lane = tl.arange(0, BLOCK)[None, :]
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        row = as_int64(tile) * ROWS + tl.arange(0, ROWS)
        there = row < rows
        inside = there[:, None] & (lane < SIZE)
        highest = tl.zeros([ROWS], dtype=tl.float32) + float("-inf")
        for part in tl.static_range(PARTS):
            highest = tl.maximum(highest, tl.load(lses + as_int64(part) * rows + row, mask=there, other=float("-inf")))
        # Where no part has seen anything, 0 stands for the highest: all weights are exp(-inf).
        base = tl.where(highest == float("-inf"), 0.0, highest)
        sums = tl.zeros([ROWS], dtype=tl.float32)
        merged = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
        for part in tl.static_range(PARTS):
            exponent = tl.load(lses + as_int64(part) * rows + row, mask=there, other=float("-inf")) - base
            weight = tl.exp(exponent)
            place = (as_int64(part) * rows + row[:, None]) * SIZE + lane
            value = tl.load(outputs + place, mask=inside, other=0.0).to(tl.float32)
            # A part that has seen nothing may hold anything, NaN too.
            merged += tl.where(weight[:, None] > 0, value * weight[:, None], 0.0)
            sums += weight
        seen = tl.where(sums > 0, sums, 1.0)
        merged = merged / seen[:, None]
        total = tl.where(sums > 0, base + tl.log(seen), float("-inf"))
        tl.store(output + row[:, None] * SIZE + lane, merged.to(output.dtype.element_ty), mask=inside)
        tl.store(lse + row, total, mask=there)


def merge_attention_triton(outputs: torch.Tensor, lses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.merge_attention`."""
    parts, size = outputs.shape[0], outputs.shape[-1]
    outputs, lses = outputs.contiguous(), lses.contiguous()
    output, lse = torch.empty_like(outputs[0]), torch.empty_like(lses[0])
    if output.numel() == 0:
        return output, lse
    rows = lse.numel()
    plan = plan_merge(current_target(outputs.device), rows, size, outputs.itemsize)
    launch(
        merge_attention_kernel,
        (plan.programs,),
        outputs,
        lses,
        output,
        lse,
        rows,
        plan.tiles,
        PARTS=parts,
        SIZE=size,
        ROWS=plan.rows,
        BLOCK=plan.block,
    )
    return output, lse
