"""Triton kernel: the state at the start of each chunk, one sequence and head and slice of value channels at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.chunk_delta_h.plan import DeltaHPlan, plan_chunk_delta_h
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.ops.fla.packed import heads_together
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import product_block
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks", "programs"])
def chunk_delta_h_kernel(
    keys,
    reading,
    values,
    inverses,
    read_fades,
    write_fades,
    sums,
    initial,
    states,
    deltas,
    final,
    cu_seqlens,
    offsets,
    key_stride,
    reading_stride,
    value_stride,
    tasks,
    programs,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    READ_GROUP: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
    SLICES: tl.constexpr,
    CHUNK: tl.constexpr,
    FACTORED: tl.constexpr,
    SAME_KEYS: tl.constexpr,
    READ_FADES: tl.constexpr,
    DECAYS: tl.constexpr,
    CHANNEL_DECAYS: tl.constexpr,
    HAS_INITIAL: tl.constexpr,
    TRANSITION: tl.constexpr,
    STAGES: tl.constexpr,
):
    lane = tl.arange(0, CHUNK)
    row = lane[:, None]
    channel = tl.arange(0, BK)
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        slice_index = task % SLICES
        head = (task // SLICES) % HEADS
        sequence = task // (SLICES * HEADS)
        column = slice_index * BV + tl.arange(0, BV)[None, :]
        begin = tl.load(cu_seqlens + sequence).to(tl.int64)
        length = (tl.load(cu_seqlens + sequence + 1) - begin).to(tl.int32)
        in_state = (channel[:, None] < K) & (column < V)
        state_offsets = channel[:, None] * V + column
        of_sequence = as_int64(sequence * HEADS + head) * (K * V)
        if TRANSITION:
            state = tl.where(channel[:, None] == column, 1.0, 0.0)
        elif HAS_INITIAL:
            state = tl.load(initial + of_sequence + state_offsets, mask=in_state, other=0.0).to(tl.float32)
        else:
            state = tl.zeros([BK, BV], dtype=tl.float32)
        if not TRANSITION:
            entry = tl.load(offsets + sequence).to(tl.int64)
        for chunk in tl.range(0, (length + CHUNK - 1) // CHUNK, num_stages=STAGES):
            token = begin + chunk * CHUNK
            remaining = length - chunk * CHUNK
            inside = row < remaining
            start = token * HEADS + head
            last = tl.minimum(CHUNK, remaining) - 1
            if READ_FADES:
                read_fade = tl.load(read_fades + start + lane * HEADS, mask=lane < remaining, other=0.0)
            if DECAYS:
                write_fade = tl.load(write_fades + start + lane * HEADS, mask=lane < remaining, other=0.0)
                total = tl.load(sums + start + last * HEADS)
            if CHANNEL_DECAYS:
                total = tl.load(sums + (start + last * HEADS) * K + channel, mask=channel < K, other=0.0)
            if not TRANSITION:
                tl.store(
                    states + ((entry + chunk) * HEADS + head) * (K * V) + state_offsets,
                    state.to(states.dtype.element_ty),
                    mask=in_state,
                )
            reader = tl.load(
                reading + token * reading_stride + (head // READ_GROUP) * K + row * reading_stride + channel[None, :],
                mask=inside & (channel[None, :] < K),
                other=0.0,
            )
            read = tl.dot(reader, state.to(reader.dtype), input_precision="ieee")
            if READ_FADES:
                read *= read_fade[:, None]
            in_value = inside & (column < V)
            if TRANSITION:
                delta = -read
            else:
                value = tl.load(
                    values + token * value_stride + head * V + row * value_stride + column, mask=in_value, other=0.0
                )
                delta = value.to(tl.float32) - read
            if FACTORED:
                inverse = tl.load(
                    inverses + start * CHUNK + row * (HEADS * CHUNK) + lane[None, :], mask=inside, other=0.0
                )
                delta = tl.dot(inverse, delta.to(inverse.dtype), input_precision="ieee")
            if not TRANSITION:
                tl.store(
                    deltas + start * V + row * (HEADS * V) + column, delta.to(deltas.dtype.element_ty), mask=in_value
                )
            if DECAYS:
                delta *= write_fade[:, None]
                state *= tl.exp(total)
            if CHANNEL_DECAYS:
                state *= tl.exp(total)[:, None]
            if SAME_KEYS:
                key = tl.trans(reader)
            else:
                key = tl.load(
                    keys + token * key_stride + (head // GROUP) * K + lane[None, :] * key_stride + channel[:, None],
                    mask=(lane[None, :] < remaining) & (channel[:, None] < K),
                    other=0.0,
                )
            state += tl.dot(key, delta.to(key.dtype), input_precision="ieee")
        tl.store(final + of_sequence + state_offsets, state, mask=in_state)


@dataclass(frozen=True, slots=True)
class Decay:
    """What a walk over chunks needs of a decay.

    Attributes:
        sums: chunk-local sums, per head or (three dimensions) per key channel, whose effect on keys is in the keys.
        write_fades: by how much a token's key counts at the end of its chunk; None with sums per channel.
        read_fades: by how much the state has faded when a token reads it, for keys that do not say so themselves.
    """

    sums: torch.Tensor
    write_fades: torch.Tensor | None = None
    read_fades: torch.Tensor | None = None


class Walk(NamedTuple):
    """Results: states at the start of every chunk, deltas and final states."""

    states: torch.Tensor
    deltas: torch.Tensor
    final: torch.Tensor


def new_walk(k: torch.Tensor, values: torch.Tensor, cu_seqlens: torch.Tensor, entries: int) -> Walk:
    """Results yet to be written, for ``entries`` chunks."""
    _, heads, value_dim = values.shape
    key_dim = k.shape[2]
    final = k.new_empty(cu_seqlens.shape[0] - 1, heads, key_dim, value_dim, dtype=torch.float32)
    return Walk(k.new_empty(entries, heads, key_dim, value_dim), values.new_empty(values.shape), final)


def launch_chunk_delta_h(
    k: torch.Tensor,
    reading: torch.Tensor,
    values: torch.Tensor | None,
    inverse: torch.Tensor | None,
    decay: Decay | None,
    cu_seqlens: torch.Tensor,
    offsets: torch.Tensor | None,
    chunk: int,
    walk: Walk,
    initial_state: torch.Tensor | None = None,
    plan: DeltaHPlan | None = None,
) -> None:
    """Write a walk.

    Deltas are ``values - reading S``, multiplied with ``inverse`` if that is given: ``reading`` and ``values`` are w
    and u of the WY representation, or else keys and values with the inverse beside them, which saves writing w and u
    and reading them back. Without ``values`` the only result is the product of the transitions, in place of the final
    states.
    """
    key_dim = k.shape[2]
    heads = reading.shape[1] if values is None else values.shape[1]
    value_dim = key_dim if values is None else values.shape[2]
    sequences = cu_seqlens.shape[0] - 1
    if plan is None:
        plan = plan_chunk_delta_h(sequences * heads, key_dim, value_dim, current_target(k.device))
    block_v = product_block(value_dim, plan.block_v)
    slices = -(-value_dim // block_v)
    tasks = sequences * heads * slices
    programs = min(tasks, plan.programs)
    sums = None if decay is None else decay.sums
    read_fades = None if decay is None else decay.read_fades
    write_fades = None if decay is None else decay.write_fades
    launch(
        chunk_delta_h_kernel,
        (programs,),
        k,
        reading,
        reading if values is None else values,
        reading if inverse is None else inverse,
        reading if read_fades is None else read_fades,
        reading if write_fades is None else write_fades,
        reading if sums is None else sums,
        reading if initial_state is None else initial_state,
        *walk,
        cu_seqlens,
        cu_seqlens if offsets is None else offsets,
        k.stride(0),
        reading.stride(0),
        0 if values is None else values.stride(0),
        tasks,
        programs,
        HEADS=heads,
        GROUP=heads // k.shape[1],
        READ_GROUP=heads // reading.shape[1],
        K=key_dim,
        V=value_dim,
        BK=product_block(key_dim, 256),
        BV=block_v,
        SLICES=slices,
        CHUNK=chunk,
        FACTORED=inverse is not None,
        SAME_KEYS=reading is k,
        READ_FADES=read_fades is not None,
        DECAYS=write_fades is not None,
        CHANNEL_DECAYS=sums is not None and sums.dim() == 3,
        HAS_INITIAL=initial_state is not None,
        TRANSITION=values is None,
        STAGES=plan.stages,
        num_warps=plan.warps,
    )


def head_decay(g_cumsum: torch.Tensor | None, cu_seqlens: torch.Tensor, chunk: int) -> Decay | None:
    """What the walk needs of chunk-local sums, for keys that are as they came."""
    if g_cumsum is None:
        return None
    if g_cumsum.dim() == 3:
        return Decay(g_cumsum.contiguous())
    sums = g_cumsum.contiguous()
    token = torch.arange(sums.shape[0], device=sums.device)
    owner = (token[:, None] >= cu_seqlens[None, 1:]).sum(1)
    last = torch.minimum(token - (token - cu_seqlens[owner]) % chunk + chunk, cu_seqlens[owner + 1]) - 1
    return Decay(sums, write_fades=torch.exp(sums[last] - sums))


def chunk_delta_h_triton(
    k: torch.Tensor,
    w: torch.Tensor,
    u: torch.Tensor,
    g_cumsum: torch.Tensor | None,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    offsets: torch.Tensor,
    entries: int,
    chunk: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.chunk_delta_h`."""
    k, w, u = heads_together(k), heads_together(w), heads_together(u)
    initial_state = None if initial_state is None else initial_state.contiguous()
    decay = head_decay(g_cumsum, cu_seqlens, chunk)
    walk = new_walk(k, u, cu_seqlens, entries)
    launch_chunk_delta_h(k, w, u, None, decay, cu_seqlens, offsets, chunk, walk, initial_state)
    return walk


def chunk_transition_triton(
    k: torch.Tensor, w: torch.Tensor, g_cumsum: torch.Tensor | None, cu_seqlens: torch.Tensor, chunk: int
) -> torch.Tensor:
    """See :func:`ascend_kernels.chunk_transition`."""
    k, w = heads_together(k), heads_together(w)
    decay = head_decay(g_cumsum, cu_seqlens, chunk)
    product = k.new_empty(cu_seqlens.shape[0] - 1, w.shape[1], k.shape[2], k.shape[2], dtype=torch.float32)
    walk = Walk(product, product, product)
    launch_chunk_delta_h(k, w, None, None, decay, cu_seqlens, None, chunk, walk)
    return product
