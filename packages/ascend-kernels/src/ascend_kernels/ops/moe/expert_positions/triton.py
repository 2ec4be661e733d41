"""Triton kernels: where each expert's rows begin in every block of assignments, then every assignment's row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.moe.expert_positions.plan import BLOCK, TILE, plan_positions
from ascend_kernels.target import current_target


# A program counts for one expert after another: no two programs write to one address, and no order is lost. Counts
# are floats, which are exact below 2**24: the interpreter's sums of int32 have 64 bits and overwrite their neighbours.
@triton.jit(do_not_specialize=["assignments", "blocks", "first", "experts"])
def expert_begins_kernel(
    ids, begins, counts, offsets, assignments, blocks, first, experts, BLOCK: tl.constexpr, TILE: tl.constexpr
):
    row = tl.arange(0, TILE)
    lane = tl.arange(0, BLOCK)[None, :]
    for expert in range(tl.program_id(0), experts, tl.num_programs(0)):
        before = tl.zeros([TILE, BLOCK], dtype=tl.float32)
        for start in range(0, blocks, TILE):
            index = (start + row[:, None]) * BLOCK + lane
            own = tl.load(ids + index, mask=index < assignments, other=-1).to(tl.int32) - first
            before += tl.where((index < assignments) & (own >= 0) & (own < expert), 1.0, 0.0)
        begin = tl.sum(tl.sum(before, axis=1), axis=0)
        reached = begin
        for start in range(0, blocks, TILE):
            index = (start + row[:, None]) * BLOCK + lane
            own = tl.load(ids + index, mask=index < assignments, other=-1).to(tl.int32) - first
            found = tl.sum(tl.where((index < assignments) & (own == expert), 1.0, 0.0), axis=1)
            earlier = tl.sum(tl.where(row[None, :] < row[:, None], found[None, :], 0.0), axis=1)
            tl.store(
                begins + (start + row) * experts + expert, (reached + earlier).to(tl.int32), mask=start + row < blocks
            )
            reached += tl.sum(found, axis=0)
        tl.store(counts + expert, (reached - begin).to(tl.int32))
        tl.store(offsets + expert, begin.to(tl.int32))
        if expert == experts - 1:
            tl.store(offsets + experts, reached.to(tl.int32))


@triton.jit(do_not_specialize=["assignments", "blocks", "first", "experts"])
def assignment_rows_kernel(ids, begins, positions, assignments, blocks, first, experts, BLOCK: tl.constexpr):
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
        for start in range(0, experts, BLOCK):
            expert = start + lane
            begin = tl.load(begins + block * experts + expert, mask=expert < experts, other=0).to(tl.float32)
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
    launch(expert_begins_kernel, (plan.counters,), ids, begins, counts, offsets, *numbers, BLOCK=BLOCK, TILE=TILE)
    launch(assignment_rows_kernel, (plan.rankers,), ids, begins, positions, *numbers, BLOCK=BLOCK)
    return positions, counts, offsets
