"""Triton kernels: rows of each expert in front of every block of assignments, where they begin, every row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.moe.expert_positions.plan import BLOCK, plan_positions
from ascend_kernels.target import current_target


# A program counts for one expert after another: no two programs write to one address, and no order is lost. Counts
# are floats, which are exact below 2**24: the interpreter's sums of int32 have 64 bits and overwrite their neighbours.
@triton.jit(do_not_specialize=["assignments", "blocks", "first", "experts"])
def expert_counts_kernel(
    ids, begins, counts, assignments, blocks, first, experts, BLOCK: tl.constexpr, TILE: tl.constexpr
):
    """How many rows of an expert there are, and how many in front of each block."""
    row = tl.arange(0, TILE)
    lane = tl.arange(0, BLOCK)[None, :]
    for expert in range(tl.program_id(0), experts, tl.num_programs(0)):
        reached = 0.0
        for start in range(0, blocks, TILE):
            index = (start + row[:, None]) * BLOCK + lane
            own = tl.load(ids + index, mask=index < assignments, other=-1).to(tl.int32) - first
            found = tl.sum(tl.where((index < assignments) & (own == expert), 1.0, 0.0), axis=1)
            earlier = tl.sum(tl.where(row[None, :] < row[:, None], found[None, :], 0.0), axis=1)
            tl.store(
                begins + (start + row) * experts + expert, (reached + earlier).to(tl.int32), mask=start + row < blocks
            )
            reached += tl.sum(found, axis=0)
        tl.store(counts + expert, reached.to(tl.int32))


@triton.jit(do_not_specialize=["experts"])
def expert_offsets_kernel(counts, offsets, experts, BLOCK: tl.constexpr):
    """Where the rows of each expert begin."""
    lane = tl.arange(0, BLOCK)
    reached = 0.0
    for start in range(0, experts, BLOCK):
        expert = start + lane
        count = tl.load(counts + expert, mask=expert < experts, other=0).to(tl.float32)
        earlier = tl.sum(tl.where(lane[None, :] < lane[:, None], count[None, :], 0.0), axis=1)
        tl.store(offsets + expert, (reached + earlier).to(tl.int32), mask=expert < experts)
        reached += tl.sum(count, axis=0)
    tl.store(offsets + experts, reached.to(tl.int32))


@triton.jit(do_not_specialize=["assignments", "blocks", "first", "experts"])
def assignment_rows_kernel(
    ids, begins, offsets, positions, assignments, blocks, first, experts, BLOCK: tl.constexpr, GATHER: tl.constexpr
):
    lane = tl.arange(0, BLOCK)
    earlier = tl.where(lane[None, :] < lane[:, None], 1.0, 0.0)
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        index = block * BLOCK + lane
        inside = index < assignments
        own = tl.load(ids + index, mask=inside, other=-1).to(tl.int32) - first
        here = inside & (own >= 0) & (own < experts)
        # Compared and counted as floats, which are exact below 2**24.
        mine = tl.where(here, own, -1).to(tl.float32)
        place = tl.sum(tl.where(mine[:, None] == mine[None, :], earlier, 0.0), axis=1)
        if GATHER:
            begin = tl.load(begins + block * experts + own, mask=here, other=0)
            place += (begin + tl.load(offsets + own, mask=here, other=0)).to(tl.float32)
        else:
            for start in range(0, experts, BLOCK):
                expert = start + lane
                begin = tl.load(begins + block * experts + expert, mask=expert < experts, other=0)
                begin = (begin + tl.load(offsets + expert, mask=expert < experts, other=0)).to(tl.float32)
                place += tl.sum(tl.where(mine[:, None] == expert.to(tl.float32)[None, :], begin[None, :], 0.0), axis=1)
        tl.store(positions + index, tl.where(here, place.to(tl.int32), -1), mask=inside)


def expert_positions_triton(
    ids: torch.Tensor, first: int, experts: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.expert_positions`."""
    positions = torch.empty_like(ids, dtype=torch.int32, memory_format=torch.contiguous_format)
    counts = ids.new_empty(experts, dtype=torch.int32)
    offsets = ids.new_empty(experts + 1, dtype=torch.int32)
    plan = plan_positions(current_target(ids.device), ids.numel(), experts)
    begins = ids.new_empty(plan.blocks, experts, dtype=torch.int32)
    ids = ids.contiguous()
    numbers = (ids.numel(), plan.blocks, first, experts)
    launch(
        expert_counts_kernel,
        (plan.counters,),
        ids,
        begins,
        counts,
        *numbers,
        BLOCK=BLOCK,
        TILE=plan.tile,
        num_warps=plan.warps,
    )
    launch(expert_offsets_kernel, (1,), counts, offsets, experts, BLOCK=BLOCK)
    launch(
        assignment_rows_kernel,
        (plan.rankers,),
        ids,
        begins,
        offsets,
        positions,
        *numbers,
        BLOCK=BLOCK,
        GATHER=plan.gather,
    )
    return positions, counts, offsets
