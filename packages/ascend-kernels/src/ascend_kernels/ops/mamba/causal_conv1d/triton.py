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
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SILU: tl.constexpr,
    STAGES: tl.constexpr,
):
    row = tl.arange(0, ROWS)[:, None]
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        run = task // SLICES
        column = (task - run * SLICES) * BLOCK + tl.arange(0, BLOCK)
        in_channels = column < CHANNELS
        begin = tl.load(first + run)
        length = tl.load(end + run) - begin
        owner = tl.maximum(tl.load(sequence + run), 0)
        # Tokens of the sequence before this run; rows further back come from the state.
        before = begin - tl.load(cu_seqlens + owner).to(tl.int32)
        for start in tl.range(0, length, ROWS, num_stages=STAGES):
            token = as_int64(begin) + start
            inside = (row < length - start) & in_channels[None, :]
            source = x + token * x_stride + row * x_stride + column[None, :]
            result = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
            if HAS_BIAS:
                result += tl.load(bias + column, mask=in_channels, other=0.0).to(tl.float32)[None, :]
            for tap in tl.static_range(0, WIDTH):
                factor = tl.load(weight + column * WIDTH + tap, mask=in_channels, other=0.0).to(tl.float32)
                value = tl.load(
                    source - (WIDTH - 1 - tap) * x_stride,
                    mask=inside & (row + start + before >= WIDTH - 1 - tap),
                    other=0.0,
                )
                result += value.to(tl.float32) * factor[None, :]
            if before + start < WIDTH - 1:
                slot = tl.load(read_slot + owner).to(tl.int64)
                history = state + tl.maximum(slot, 0) * state_stride + column * state_channel
                for tap in tl.static_range(0, WIDTH - 1):
                    taken = tl.load(weight + column * WIDTH + tap, mask=in_channels, other=0.0).to(tl.float32)
                    for past in tl.static_range(0, WIDTH - 1 - tap):
                        # The token `past` rows into the sequence needs row `tap + past` of the window.
                        old = tl.load(history + (tap + past) * state_row, mask=in_channels & (slot >= 0), other=0.0)
                        product = old.to(tl.float32) * taken
                        result += tl.where(row + start + before == past, product[None, :], 0.0)
            if SILU:
                # The square of a reciprocal root: a division takes several times as long.
                root = tl.rsqrt(1.0 + tl.exp(-result))
                result *= root * root
            tl.store(
                output + token * CHANNELS + row * CHANNELS + column[None, :],
                result.to(output.dtype.element_ty),
                mask=inside,
            )


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
    sequence, first, end, _ = chunk_index_triton(cu_seqlens, tokens, plan.rows * plan.repeats)
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
        ROWS=plan.rows,
        BLOCK=plan.block,
        HAS_BIAS=bias is not None,
        SILU=silu,
        STAGES=plan.stages,
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
