"""Triton kernel: one lane per row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.inputs.decode_inputs.plan import plan_decode_inputs


@triton.jit(do_not_specialize=["rows", "previous_stride", "table_stride", "block_size"])
def decode_inputs_kernel(
    staged,
    previous_tokens,
    block_table,
    input_ids,
    positions,
    seq_lens,
    slots,
    rows,
    previous_stride,
    table_stride,
    block_size,
    pad,
    HAS_PREVIOUS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = row < rows
    position = tl.load(staged + row, mask=inside, other=-1)
    token = tl.load(staged + rows * 2 + row, mask=inside, other=0)
    real = position >= 0
    if HAS_PREVIOUS:
        source = tl.load(staged + rows + row, mask=inside, other=-1)
        sampled = source >= 0
        # Clamped before it becomes an address: a masked lane must not point before the buffer either.
        address = previous_tokens + tl.where(sampled, source, 0) * previous_stride
        token = tl.where(sampled, tl.load(address, mask=inside & sampled, other=0).to(tl.int32), token)
    position = tl.where(real, position, 0)
    page_index = position // block_size
    page = tl.load(block_table + row * table_stride + page_index, mask=inside & real, other=0)
    slot = page * block_size + (position - page_index * block_size)
    tl.store(input_ids + row, tl.where(real, token, 0), mask=inside)
    tl.store(positions + row, position.to(tl.int64), mask=inside)
    tl.store(seq_lens + row, tl.where(real, position + 1, 0), mask=inside)
    tl.store(slots + row, tl.where(real, slot, pad), mask=inside)


def decode_inputs_triton(
    staged: torch.Tensor,
    previous_tokens: torch.Tensor | None,
    block_table: torch.Tensor,
    block_size: int,
    input_ids: torch.Tensor,
    positions: torch.Tensor,
    seq_lens: torch.Tensor,
    slots: torch.Tensor,
    pad: int,
) -> None:
    """See :func:`ascend_kernels.decode_inputs`."""
    rows = staged.shape[1]
    plan = plan_decode_inputs(rows)
    launch(
        decode_inputs_kernel,
        (plan.programs,),
        staged,
        staged if previous_tokens is None else previous_tokens,
        block_table,
        input_ids,
        positions,
        seq_lens,
        slots,
        rows,
        0 if previous_tokens is None else previous_tokens.stride(0),
        block_table.stride(0),
        block_size,
        pad,
        HAS_PREVIOUS=previous_tokens is not None,
        BLOCK=plan.block,
    )
