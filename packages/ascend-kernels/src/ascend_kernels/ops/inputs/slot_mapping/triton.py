"""Triton kernel: a program takes whole requests, so a page number is looked up next to the request's row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.inputs.slot_mapping.plan import plan_slot_mapping


@triton.jit(do_not_specialize=["requests", "table_stride", "block_size", "num_slots", "programs"])
def slot_mapping_kernel(
    query_start_loc,
    positions,
    block_table,
    slots,
    requests,
    table_stride,
    block_size,
    num_slots,
    pad,
    programs,
    BLOCK: tl.constexpr,
):
    lane = tl.arange(0, BLOCK)
    for request in range(tl.program_id(0), requests + 1, programs):
        first = tl.load(query_start_loc + request)
        if request == requests:
            for start in range(first, num_slots, BLOCK):
                token = start + lane
                tl.store(slots + token, tl.zeros([BLOCK], dtype=tl.int32) + pad, mask=token < num_slots)
        else:
            end = tl.load(query_start_loc + request + 1)
            row = block_table + request * table_stride
            for start in range(first, end, BLOCK):
                token = start + lane
                inside = token < end
                position = tl.load(positions + token, mask=inside, other=0).to(tl.int32)
                page_index = position // block_size
                page = tl.load(row + page_index, mask=inside, other=0)
                # Integers throughout: page numbers beyond 2**24 would not survive a detour through float32.
                tl.store(slots + token, page * block_size + (position - page_index * block_size), mask=inside)


def slot_mapping_triton(
    query_start_loc: torch.Tensor,
    positions: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    slots: torch.Tensor,
    pad: int,
) -> None:
    """See :func:`ascend_kernels.slot_mapping`."""
    requests = query_start_loc.shape[0] - 1
    plan = plan_slot_mapping(requests, slots.shape[0])
    launch(
        slot_mapping_kernel,
        (plan.programs,),
        query_start_loc,
        positions,
        block_table,
        slots,
        requests,
        block_table.stride(0),
        block_size,
        slots.shape[0],
        pad,
        plan.programs,
        BLOCK=plan.block,
    )
