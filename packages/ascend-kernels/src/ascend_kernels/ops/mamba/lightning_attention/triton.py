"""Triton kernels: what each segment of a sequence adds to the state, then all outputs of each segment."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.chunk_index.triton import chunk_index_triton
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.ops.fla.packed import heads_together
from ascend_kernels.ops.fla.recurrent_delta_rule.triton import launch_recurrence
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import product_block
from ascend_kernels.ops.mamba.lightning_attention.plan import LightningPlan, plan_lightning_attention
from ascend_kernels.target import current_target


@triton.jit
def add_chunk(state, key, value, slope, length, CHUNK: tl.constexpr):
    """The state [K, V] after a chunk: key is [K, CHUNK], value [CHUNK, V], both zero behind ``length`` tokens."""
    after = (length - 1 - tl.arange(0, CHUNK)).to(tl.float32)
    faded = value.to(tl.float32) * tl.exp(-slope * tl.maximum(after, 0.0))[:, None]
    state *= tl.exp(-slope * length.to(tl.float32))
    return state + tl.dot(key, faded.to(value.dtype), input_precision="ieee")


@triton.jit(do_not_specialize=["tasks", "programs"])
def lightning_segment_kernel(
    keys,
    values,
    slopes,
    partial,
    sequence,
    first,
    end,
    offsets,
    key_stride,
    value_stride,
    tasks,
    programs,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
    SLICES: tl.constexpr,
    CHUNK: tl.constexpr,
    STAGES: tl.constexpr,
):
    lane = tl.arange(0, CHUNK)
    channel = tl.arange(0, BK)
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        slice_index = task % SLICES
        head = (task // SLICES) % HEADS
        segment = task // (SLICES * HEADS)
        column = slice_index * BV + tl.arange(0, BV)[None, :]
        begin = tl.load(first + segment)
        length = tl.load(end + segment) - begin
        owner = tl.maximum(tl.load(sequence + segment), 0)
        # The last segment of a sequence adds to no other segment.
        if (length > 0) & (segment + 1 < tl.load(offsets + owner + 1)):
            slope = tl.load(slopes + head).to(tl.float32)
            state = tl.zeros([BK, BV], dtype=tl.float32)
            for start in tl.range(0, length, CHUNK, num_stages=STAGES):
                token = as_int64(begin) + start
                remaining = length - start
                key = tl.load(
                    keys + token * key_stride + (head // GROUP) * K + lane[None, :] * key_stride + channel[:, None],
                    mask=(lane[None, :] < remaining) & (channel[:, None] < K),
                    other=0.0,
                )
                value = tl.load(
                    values + token * value_stride + head * V + lane[:, None] * value_stride + column,
                    mask=(lane[:, None] < remaining) & (column < V),
                    other=0.0,
                )
                state = add_chunk(state, key, value, slope, tl.minimum(remaining, CHUNK), CHUNK)
            tl.store(
                partial + (as_int64(segment) * HEADS + head) * (K * V) + channel[:, None] * V + column,
                state,
                mask=(channel[:, None] < K) & (column < V),
            )


@triton.jit(do_not_specialize=["tasks", "programs"])
def lightning_output_kernel(
    queries,
    keys,
    values,
    slopes,
    partial,
    initial,
    output,
    final,
    sequence,
    first,
    end,
    offsets,
    scale,
    query_stride,
    key_stride,
    value_stride,
    tasks,
    programs,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
    SLICES: tl.constexpr,
    SEGMENT: tl.constexpr,
    CHUNK: tl.constexpr,
    STAGES: tl.constexpr,
):
    lane = tl.arange(0, CHUNK)
    row = lane[:, None]
    channel = tl.arange(0, BK)
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        slice_index = task % SLICES
        head = (task // SLICES) % HEADS
        segment = task // (SLICES * HEADS)
        column = slice_index * BV + tl.arange(0, BV)[None, :]
        begin = tl.load(first + segment)
        length = tl.load(end + segment) - begin
        if length > 0:
            owner = tl.load(sequence + segment)
            slope = tl.load(slopes + head).to(tl.float32)
            in_state = (channel[:, None] < K) & (column < V)
            state_offsets = channel[:, None] * V + column
            of_sequence = (as_int64(owner) * HEADS + head) * (K * V)
            state = tl.load(initial + of_sequence + state_offsets, mask=in_state, other=0.0).to(tl.float32)
            for earlier in tl.range(tl.load(offsets + owner), segment, num_stages=1):
                added = tl.load(
                    partial + (as_int64(earlier) * HEADS + head) * (K * V) + state_offsets, mask=in_state, other=0.0
                )
                state = state * tl.exp(-slope * SEGMENT) + added
            distance = tl.where(row >= lane[None, :], (row - lane[None, :]).to(tl.float32), 0.0)
            fade = tl.where(row >= lane[None, :], tl.exp(-slope * distance), 0.0)
            if values.dtype.element_ty == tl.bfloat16:
                # Of numbers up to 1 half precision keeps eight times what the products are rounded to.
                fade = fade.to(tl.float16)
            age = tl.exp(-slope * (lane + 1).to(tl.float32))
            for start in tl.range(0, length, CHUNK, num_stages=STAGES):
                token = as_int64(begin) + start
                remaining = length - start
                in_value = (row < remaining) & (column < V)
                query = tl.load(
                    queries + token * query_stride + (head // GROUP) * K + row * query_stride + channel[None, :],
                    mask=(row < remaining) & (channel[None, :] < K),
                    other=0.0,
                )
                key = tl.load(
                    keys + token * key_stride + (head // GROUP) * K + lane[None, :] * key_stride + channel[:, None],
                    mask=(lane[None, :] < remaining) & (channel[:, None] < K),
                    other=0.0,
                )
                value = tl.load(
                    values + token * value_stride + head * V + row * value_stride + column, mask=in_value, other=0.0
                )
                scores = (tl.dot(query, key, input_precision="ieee") * fade.to(tl.float32)).to(value.dtype)
                result = tl.dot(query, state.to(query.dtype), input_precision="ieee") * age[:, None]
                result += tl.dot(scores, value, input_precision="ieee")
                tl.store(
                    output + (token * HEADS + head) * V + row * (HEADS * V) + column,
                    (result * scale).to(output.dtype.element_ty),
                    mask=in_value,
                )
                state = add_chunk(state, key, value, slope, tl.minimum(remaining, CHUNK), CHUNK)
            if segment + 1 == tl.load(offsets + owner + 1):
                tl.store(final + of_sequence + state_offsets, state, mask=in_state)


def lightning_attention_triton(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    slopes: torch.Tensor,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    scale: float,
    plan: LightningPlan | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.lightning_attention`."""
    q, k, v = heads_together(q), heads_together(k), heads_together(v)
    tokens, heads, value_dim = v.shape
    key_dim = q.shape[2]
    sequences = cu_seqlens.shape[0] - 1
    if plan is None:
        plan = plan_lightning_attention(tokens, sequences, heads, value_dim, current_target(q.device))
    output = v.new_empty(tokens, heads, value_dim)
    shape = (sequences, heads, key_dim, value_dim)
    if initial_state is None:
        initial_state = q.new_zeros(shape, dtype=torch.float32)
    # A sequence without tokens has no segment: what it has at the start is what it has at the end.
    final = initial_state.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
    index = chunk_index_triton(cu_seqlens, tokens, plan.segment)
    sequence, first, end, offsets = index
    partial = q.new_empty(first.shape[0], heads, key_dim, value_dim, dtype=torch.float32)
    block_v = product_block(value_dim, plan.block_v)
    slices = -(-value_dim // block_v)
    tasks = first.shape[0] * heads * slices
    programs = min(tasks, plan.programs)
    partial_block_v = product_block(value_dim, plan.partial_block_v)
    partial_slices = -(-value_dim // partial_block_v)
    partial_tasks = first.shape[0] * heads * partial_slices
    partial_programs = min(partial_tasks, plan.programs) if tokens > plan.segment else 0
    options = {
        "HEADS": heads,
        "GROUP": heads // q.shape[1],
        "K": key_dim,
        "V": value_dim,
        "BK": product_block(key_dim, 256),
        "CHUNK": plan.chunk,
    }
    launch(
        lightning_segment_kernel,
        (partial_programs,),
        k,
        v,
        slopes,
        partial,
        sequence,
        first,
        end,
        offsets,
        k.stride(0),
        v.stride(0),
        partial_tasks,
        partial_programs,
        BV=partial_block_v,
        SLICES=partial_slices,
        STAGES=plan.partial_stages,
        num_warps=plan.partial_warps,
        **options,
    )
    launch(
        lightning_output_kernel,
        (programs,),
        q,
        k,
        v,
        slopes,
        partial,
        initial_state.contiguous(),
        output,
        final,
        sequence,
        first,
        end,
        offsets,
        scale,
        q.stride(0),
        k.stride(0),
        v.stride(0),
        tasks,
        programs,
        SEGMENT=plan.segment,
        BV=block_v,
        SLICES=slices,
        STAGES=plan.stages,
        num_warps=plan.warps,
        **options,
    )
    return output, final


def lightning_attention_update_triton(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    slopes: torch.Tensor,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    state_indices: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """See :func:`ascend_kernels.lightning_attention_update`."""
    return launch_recurrence(q, k, v, slopes, None, state, state, cu_seqlens, state_indices, None, scale, False)
