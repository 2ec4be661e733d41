"""Triton kernels: outputs a tile of tokens and channels at a time, and the windows that later steps continue from."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.chunk_index.triton import chunk_index_triton
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.ops.mamba.causal_conv1d.plan import ConvPlan, plan_causal_conv1d
from ascend_kernels.target import current_target


@triton.jit
def weight_of(weight, column, inside, DISTANCE: tl.constexpr, WIDTH: tl.constexpr):
    """The weights of the rows ``DISTANCE`` before the own one; zeros where the filter ends before."""
    if DISTANCE < WIDTH:
        factor = tl.load(weight + column * WIDTH + (WIDTH - 1 - DISTANCE), mask=inside, other=0.0).to(tl.float32)
    else:
        factor = column.to(tl.float32) * 0.0
    return factor


@triton.jit
def row_at(x, history, position, used, x_stride, state_row, inside, known, WIDTH: tl.constexpr):
    """Row ``position`` of a sequence that begins at ``x``: of the window before it where that is negative."""
    new = tl.load(x + position * x_stride, mask=inside & used & (position >= 0), other=0.0)
    old = tl.load(history + (WIDTH - 1 + position) * state_row, mask=inside & used & known & (position < 0), other=0.0)
    return new.to(tl.float32) + old.to(tl.float32)


@triton.jit
def convolved(shift, own, next1, next2, next3, row, past1, past2, past3, WIDTH: tl.constexpr):
    """Up to four taps of a row; what a shorter filter does not look at may hold anything."""
    result = shift + own * row
    if WIDTH > 1:
        result += next1 * past1
    if WIDTH > 2:
        result += next2 * past2
    if WIDTH > 3:
        result += next3 * past3
    return result


@triton.jit
def activated(value, dtype: tl.constexpr, SILU: tl.constexpr):
    if SILU:
        # The square of a reciprocal root: a division takes several times as long.
        root = tl.rsqrt(1.0 + tl.exp(-value))
        value *= root * root
    return value.to(dtype)


@triton.jit(do_not_specialize=["tasks", "programs"])
def causal_conv1d_kernel(
    x,
    weight,
    bias,
    state,
    read_slot,
    output,
    sequence,
    first,
    end,
    cu_seqlens,
    x_stride,
    state_stride,
    state_row,
    state_channel,
    tasks,
    programs,
    CHANNELS: tl.constexpr,
    SLICES: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SILU: tl.constexpr,
):
    """A run of tokens, four rows at a time: a row is read once and stays on chip for the three rows behind it."""
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        run = task // SLICES
        column = (task - run * SLICES) * BLOCK + tl.arange(0, BLOCK)
        inside = column < CHANNELS
        begin = tl.load(first + run)
        length = tl.load(end + run) - begin
        owner = tl.maximum(tl.load(sequence + run), 0)
        origin = tl.load(cu_seqlens + owner).to(tl.int64)
        # Tokens of the sequence before this run; rows further back come from the state.
        before = begin - origin.to(tl.int32)
        slot = tl.load(read_slot + owner).to(tl.int64)
        history = state + tl.maximum(slot, 0) * state_stride + column * state_channel
        of_sequence = x + origin * x_stride + column
        source = x + as_int64(begin) * x_stride + column
        target = output + as_int64(begin) * CHANNELS + column
        shift = column.to(tl.float32) * 0.0
        if HAS_BIAS:
            shift = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
        own = weight_of(weight, column, inside, 0, WIDTH)
        next1 = weight_of(weight, column, inside, 1, WIDTH)
        next2 = weight_of(weight, column, inside, 2, WIDTH)
        next3 = weight_of(weight, column, inside, 3, WIDTH)
        some = length > 0
        past1 = shift
        if WIDTH > 1:
            past1 = row_at(of_sequence, history, before - 1, some, x_stride, state_row, inside, slot >= 0, WIDTH)
        past2 = shift
        if WIDTH > 2:
            past2 = row_at(of_sequence, history, before - 2, some, x_stride, state_row, inside, slot >= 0, WIDTH)
        past3 = shift
        if WIDTH > 3:
            past3 = row_at(of_sequence, history, before - 3, some, x_stride, state_row, inside, slot >= 0, WIDTH)
        for start in tl.range(0, length, 4, num_stages=1):
            left = length - start
            here = source + as_int64(start) * x_stride
            row0 = tl.load(here, mask=inside, other=0.0).to(tl.float32)
            row1 = tl.load(here + x_stride, mask=inside & (left > 1), other=0.0).to(tl.float32)
            row2 = tl.load(here + 2 * x_stride, mask=inside & (left > 2), other=0.0).to(tl.float32)
            row3 = tl.load(here + 3 * x_stride, mask=inside & (left > 3), other=0.0).to(tl.float32)
            result0 = convolved(shift, own, next1, next2, next3, row0, past1, past2, past3, WIDTH)
            result1 = convolved(shift, own, next1, next2, next3, row1, row0, past1, past2, WIDTH)
            result2 = convolved(shift, own, next1, next2, next3, row2, row1, row0, past1, WIDTH)
            result3 = convolved(shift, own, next1, next2, next3, row3, row2, row1, row0, WIDTH)
            for distance in tl.static_range(4, WIDTH):
                further = weight_of(weight, column, inside, distance, WIDTH)
                position = before + start - distance
                result0 += further * row_at(
                    of_sequence, history, position, some, x_stride, state_row, inside, slot >= 0, WIDTH
                )
                result1 += further * row_at(
                    of_sequence, history, position + 1, left > 1, x_stride, state_row, inside, slot >= 0, WIDTH
                )
                result2 += further * row_at(
                    of_sequence, history, position + 2, left > 2, x_stride, state_row, inside, slot >= 0, WIDTH
                )
                result3 += further * row_at(
                    of_sequence, history, position + 3, left > 3, x_stride, state_row, inside, slot >= 0, WIDTH
                )
            there = target + as_int64(start) * CHANNELS
            dtype: tl.constexpr = output.dtype.element_ty
            tl.store(there, activated(result0, dtype, SILU), mask=inside)
            tl.store(there + CHANNELS, activated(result1, dtype, SILU), mask=inside & (left > 1))
            tl.store(there + 2 * CHANNELS, activated(result2, dtype, SILU), mask=inside & (left > 2))
            tl.store(there + 3 * CHANNELS, activated(result3, dtype, SILU), mask=inside & (left > 3))
            past3 = row1
            past2 = row2
            past1 = row3


@triton.jit
def write_window(
    x,
    state,
    source,
    target,
    begin,
    passed,
    skipped,
    column,
    inside,
    x_stride,
    state_stride,
    state_row,
    state_channel,
    LENGTH: tl.constexpr,
):
    """Write slot ``target``: the rows of slot ``source`` from ``skipped`` on, then the last of ``passed`` rows of x.

    Row by row, so that a slot may follow itself: what a row is made of lies behind it, in the same lanes.
    """
    old = state + tl.maximum(source, 0) * state_stride + column * state_channel
    new = state + target * state_stride + column * state_channel
    for row in tl.static_range(0, LENGTH):
        from_x = row >= LENGTH - passed
        kept = tl.load(
            old + (row + skipped) * state_row,
            mask=inside & (row < LENGTH - passed) & (row + skipped < LENGTH) & (source >= 0),
            other=0.0,
        )
        added = tl.load(x + (begin + passed + row - LENGTH) * x_stride + column, mask=inside & from_x, other=0.0)
        tl.store(new + row * state_row, tl.where(from_x, added.to(state.dtype.element_ty), kept), mask=inside)


@triton.jit(do_not_specialize=["tasks", "programs", "block_size"])
def conv_window_kernel(
    x,
    state,
    read_slot,
    write_slots,
    cu_seqlens,
    first_block,
    last_block,
    computed,
    block_size,
    x_stride,
    state_stride,
    state_row,
    state_channel,
    slot_stride,
    tasks,
    programs,
    CHANNELS: tl.constexpr,
    SLICES: tl.constexpr,
    LENGTH: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKED: tl.constexpr,
):
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        sequence = task // SLICES
        column = (task - sequence * SLICES) * BLOCK + tl.arange(0, BLOCK)
        begin = tl.load(cu_seqlens + sequence).to(tl.int64)
        length = (tl.load(cu_seqlens + sequence + 1) - begin).to(tl.int32)
        source = tl.load(read_slot + sequence).to(tl.int64)
        newest = 0
        boundaries = 0
        done = 0
        if BLOCKED:
            newest = tl.load(last_block + sequence).to(tl.int32)
            boundaries = newest - tl.load(first_block + sequence).to(tl.int32)
            done = tl.load(computed + sequence).to(tl.int32)
        if length > 0:
            # Backwards: the oldest block may be the one that all windows of this sequence continue from.
            for back in range(boundaries + 1):
                block = newest - back
                passed = length
                if back > 0:
                    passed = (block + 1) * block_size - done
                target = tl.load(write_slots + sequence * slot_stride + block).to(tl.int64)
                write_window(
                    x,
                    state,
                    source,
                    target,
                    begin,
                    passed,
                    passed,
                    column,
                    (column < CHANNELS) & (target >= 0),
                    x_stride,
                    state_stride,
                    state_row,
                    state_channel,
                    LENGTH,
                )


@triton.jit(do_not_specialize=["tasks", "programs"])
def causal_conv1d_update_kernel(
    x,
    weight,
    bias,
    state,
    read_slots,
    write_slots,
    accepted,
    cu_seqlens,
    output,
    x_stride,
    state_stride,
    state_row,
    state_channel,
    tasks,
    programs,
    CHANNELS: tl.constexpr,
    SLICES: tl.constexpr,
    WIDTH: tl.constexpr,
    LENGTH: tl.constexpr,
    BLOCK: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_ACCEPTED: tl.constexpr,
    SILU: tl.constexpr,
):
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        sequence = task // SLICES
        column = (task - sequence * SLICES) * BLOCK + tl.arange(0, BLOCK)
        in_channels = column < CHANNELS
        begin = tl.load(cu_seqlens + sequence).to(tl.int64)
        length = (tl.load(cu_seqlens + sequence + 1) - begin).to(tl.int32)
        source = tl.load(read_slots + sequence).to(tl.int64)
        skipped = 0
        if HAS_ACCEPTED:
            skipped = tl.maximum(tl.load(accepted + sequence).to(tl.int32) - 1, 0)
        history = state + tl.maximum(source, 0) * state_stride + column * state_channel
        for step in range(length):
            result = tl.zeros([BLOCK], dtype=tl.float32)
            if HAS_BIAS:
                result += tl.load(bias + column, mask=in_channels, other=0.0).to(tl.float32)
            for tap in tl.static_range(0, WIDTH):
                position = step + tap - (WIDTH - 1)
                factor = tl.load(weight + column * WIDTH + tap, mask=in_channels, other=0.0).to(tl.float32)
                new = tl.load(x + (begin + position) * x_stride + column, mask=in_channels & (position >= 0), other=0.0)
                old = tl.load(
                    history + (skipped + WIDTH - 1 + position) * state_row,
                    mask=in_channels & (position < 0) & (source >= 0),
                    other=0.0,
                )
                result += (new.to(tl.float32) + old.to(tl.float32)) * factor
            if SILU:
                result = result / (1.0 + tl.exp(-result))
            tl.store(output + (begin + step) * CHANNELS + column, result.to(output.dtype.element_ty), mask=in_channels)
        target = tl.load(write_slots + sequence).to(tl.int64)
        if length > 0:
            passed = length
            if HAS_ACCEPTED:
                # Drafts that were rejected are followed by nothing: one row of the last step at least is dropped.
                passed = skipped + 1
            write_window(
                x,
                state,
                source,
                target,
                begin + 0,
                length,
                passed,
                column,
                in_channels & (target >= 0),
                x_stride,
                state_stride,
                state_row,
                state_channel,
                LENGTH,
            )


def causal_conv1d_triton(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    read_slots: torch.Tensor,
    write_slots: torch.Tensor,
    first_block: torch.Tensor | None,
    last_block: torch.Tensor | None,
    computed: torch.Tensor | None,
    block_size: int,
    silu: bool,
    plan: ConvPlan | None = None,
) -> torch.Tensor:
    """See :func:`ascend_kernels.causal_conv1d`."""
    tokens, channels = x.shape
    sequences = cu_seqlens.shape[0] - 1
    width = weight.shape[1]
    output = x.new_empty(tokens, channels)
    if plan is None:
        plan = plan_causal_conv1d(tokens, channels, current_target(x.device))
    weight = weight.contiguous()
    sequence, first, end, _ = chunk_index_triton(cu_seqlens, tokens, plan.rows)
    strides = (state.stride(0), state.stride(1), state.stride(2))
    slices = -(-channels // plan.block)
    tasks = first.shape[0] * slices
    programs = min(tasks, plan.programs)
    launch(
        causal_conv1d_kernel,
        (programs,),
        x,
        weight,
        weight if bias is None else bias,
        state,
        read_slots,
        output,
        sequence,
        first,
        end,
        cu_seqlens,
        x.stride(0),
        *strides,
        tasks,
        programs,
        CHANNELS=channels,
        SLICES=slices,
        WIDTH=width,
        BLOCK=plan.block,
        HAS_BIAS=bias is not None,
        SILU=silu,
        num_warps=plan.warps,
    )
    slices = -(-channels // plan.window_block)
    tasks = sequences * slices
    programs = min(tasks, plan.programs)
    launch(
        conv_window_kernel,
        (programs,),
        x,
        state,
        read_slots,
        write_slots,
        cu_seqlens,
        cu_seqlens if first_block is None else first_block,
        cu_seqlens if last_block is None else last_block,
        cu_seqlens if computed is None else computed,
        block_size,
        x.stride(0),
        *strides,
        write_slots.stride(0),
        tasks,
        programs,
        CHANNELS=channels,
        SLICES=slices,
        LENGTH=width - 1,
        BLOCK=plan.window_block,
        BLOCKED=last_block is not None,
    )
    return output


def causal_conv1d_update_triton(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    read_slots: torch.Tensor,
    write_slots: torch.Tensor,
    num_accepted: torch.Tensor | None,
    silu: bool,
    plan: ConvPlan | None = None,
) -> torch.Tensor:
    """See :func:`ascend_kernels.causal_conv1d_update`."""
    tokens, channels = x.shape
    sequences = cu_seqlens.shape[0] - 1
    output = x.new_empty(tokens, channels)
    if plan is None:
        plan = plan_causal_conv1d(tokens, channels, current_target(x.device))
    weight = weight.contiguous()
    slices = -(-channels // plan.window_block)
    tasks = sequences * slices
    programs = min(tasks, plan.programs)
    launch(
        causal_conv1d_update_kernel,
        (programs,),
        x,
        weight,
        weight if bias is None else bias,
        state,
        read_slots,
        write_slots,
        read_slots if num_accepted is None else num_accepted,
        cu_seqlens,
        output,
        x.stride(0),
        state.stride(0),
        state.stride(1),
        state.stride(2),
        tasks,
        programs,
        CHANNELS=channels,
        SLICES=slices,
        WIDTH=weight.shape[1],
        LENGTH=state.shape[1],
        BLOCK=plan.window_block,
        HAS_BIAS=bias is not None,
        HAS_ACCEPTED=num_accepted is not None,
        SILU=silu,
    )
    return output
