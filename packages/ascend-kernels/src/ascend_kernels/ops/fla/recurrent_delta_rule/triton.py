"""Triton kernel: the gated delta rule token by token, a slice of a state's value channels per program."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch, next_power_of_two
from ascend_kernels.ops.fla.offsets.triton import as_int64
from ascend_kernels.ops.fla.packed import heads_together
from ascend_kernels.ops.fla.recurrent_delta_rule.plan import RecurrentPlan, plan_recurrent_delta_rule
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tasks", "programs"])
def recurrent_delta_rule_kernel(
    queries,
    keys,
    values,
    decay,
    beta,
    output,
    initial,
    final,
    cu_seqlens,
    indices,
    accepted,
    scale,
    query_stride,
    key_stride,
    value_stride,
    state_stride,
    index_stride,
    tasks,
    programs,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
    SLICES: tl.constexpr,
    DELTA_RULE: tl.constexpr,
    CHANNEL_DECAYS: tl.constexpr,
    HAS_INITIAL: tl.constexpr,
    INDEXED: tl.constexpr,
    PER_TOKEN: tl.constexpr,
    HAS_ACCEPTED: tl.constexpr,
    NORMALISE: tl.constexpr,
    EPS: tl.constexpr,
    EVICT: tl.constexpr,
):
    channel = tl.arange(0, BK)
    in_key = channel < K
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        slice_index = task % SLICES
        head = (task // SLICES) % HEADS
        sequence = task // (SLICES * HEADS)
        column = slice_index * BV + tl.arange(0, BV)
        in_value = column < V
        in_state = in_key[:, None] & in_value[None, :]
        state_offsets = head * (K * V) + channel[:, None] * V + column[None, :]
        begin = tl.load(cu_seqlens + sequence).to(tl.int64)
        end = tl.load(cu_seqlens + sequence + 1).to(tl.int64)
        if INDEXED:
            read = 0
            if HAS_ACCEPTED:
                read = tl.maximum(tl.load(accepted + sequence).to(tl.int32) - 1, 0)
            slot = tl.load(indices + sequence * index_stride + read).to(tl.int64)
            # No address is formed from a negative slot: some devices fault on it although the load is masked.
            state = tl.load(
                initial + tl.maximum(slot, 0) * state_stride + state_offsets,
                mask=in_state & (slot >= 0),
                other=0.0,
                eviction_policy=EVICT,
            ).to(tl.float32)
        elif HAS_INITIAL:
            state = tl.load(initial + as_int64(sequence) * state_stride + state_offsets, mask=in_state, other=0.0).to(
                tl.float32
            )
        else:
            state = tl.zeros([BK, BV], dtype=tl.float32)
        for step in range((end - begin).to(tl.int32)):
            token = begin + step
            query = tl.load(queries + token * query_stride + (head // GROUP) * K + channel, mask=in_key, other=0.0)
            key = tl.load(keys + token * key_stride + (head // GROUP) * K + channel, mask=in_key, other=0.0)
            value = tl.load(values + token * value_stride + head * V + column, mask=in_value, other=0.0)
            query = query.to(tl.float32)
            key = key.to(tl.float32)
            if NORMALISE:
                query = query / tl.sqrt(tl.sum(query * query, axis=0) + EPS)
                key = key / tl.sqrt(tl.sum(key * key, axis=0) + EPS)
            if not DELTA_RULE:
                state *= tl.exp(-tl.load(decay + head).to(tl.float32))
            elif CHANNEL_DECAYS:
                logarithm = tl.load(decay + (token * HEADS + head) * K + channel, mask=in_key, other=0.0)
                state *= tl.exp(logarithm.to(tl.float32))[:, None]
            else:
                state *= tl.exp(tl.load(decay + token * HEADS + head).to(tl.float32))
            delta = value.to(tl.float32)
            if DELTA_RULE:
                delta -= tl.sum(state * key[:, None], axis=0)
                delta *= tl.load(beta + token * HEADS + head).to(tl.float32)
            state += key[:, None] * delta[None, :]
            result = tl.sum(state * query[:, None], axis=0) * scale
            tl.store(output + (token * HEADS + head) * V + column, result.to(output.dtype.element_ty), mask=in_value)
            if PER_TOKEN:
                slot = tl.load(indices + sequence * index_stride + step).to(tl.int64)
                tl.store(
                    final + tl.maximum(slot, 0) * state_stride + state_offsets,
                    state.to(final.dtype.element_ty),
                    mask=in_state & (slot >= 0),
                )
        if INDEXED:
            if not PER_TOKEN:
                # A sequence with no token leaves its state as it is.
                tl.store(
                    final + tl.maximum(slot, 0) * state_stride + state_offsets,
                    state.to(final.dtype.element_ty),
                    mask=in_state & (slot >= 0) & (end > begin),
                    eviction_policy=EVICT,
                )
        else:
            tl.store(
                final + as_int64(sequence) * state_stride + state_offsets,
                state.to(final.dtype.element_ty),
                mask=in_state,
            )


def launch_recurrence(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor | None,
    initial: torch.Tensor | None,
    final: torch.Tensor,
    cu_seqlens: torch.Tensor,
    state_indices: torch.Tensor | None,
    num_accepted: torch.Tensor | None,
    scale: float,
    normalise: bool,
    plan: RecurrentPlan | None = None,
) -> torch.Tensor:
    """Outputs; states go to ``final``. Without ``beta`` values are added as they are, and ``g`` are slopes per head."""
    q, k, v = heads_together(q), heads_together(k), heads_together(v)
    tokens, heads, value_dim = v.shape
    key_dim = q.shape[2]
    sequences = cu_seqlens.shape[0] - 1
    if plan is None:
        plan = plan_recurrent_delta_rule(sequences * heads, key_dim, value_dim, current_target(q.device))
    output = v.new_empty(tokens, heads, value_dim)
    block_v = min(plan.block_v, next_power_of_two(value_dim))
    slices = -(-value_dim // block_v)
    tasks = sequences * heads * slices
    programs = min(tasks, plan.programs)
    launch(
        recurrent_delta_rule_kernel,
        (programs,),
        q,
        k,
        v,
        g.contiguous(),
        g if beta is None else beta.contiguous(),
        output,
        final if initial is None else initial,
        final,
        cu_seqlens,
        cu_seqlens if state_indices is None else state_indices,
        cu_seqlens if num_accepted is None else num_accepted,
        scale,
        q.stride(0),
        k.stride(0),
        v.stride(0),
        final.stride(0),
        0 if state_indices is None else state_indices.stride(0),
        tasks,
        programs,
        HEADS=heads,
        GROUP=heads // q.shape[1],
        K=key_dim,
        V=value_dim,
        BK=next_power_of_two(key_dim),
        BV=block_v,
        SLICES=slices,
        DELTA_RULE=beta is not None,
        CHANNEL_DECAYS=g.dim() == 3,
        HAS_INITIAL=initial is not None,
        INDEXED=state_indices is not None,
        PER_TOKEN=state_indices is not None and state_indices.dim() == 2,
        HAS_ACCEPTED=num_accepted is not None,
        NORMALISE=normalise,
        EPS=1e-6,
        EVICT=plan.evict,
        num_warps=plan.warps,
    )
    return output


def recurrent_delta_rule_triton(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    scale: float,
    normalise: bool,
    plan: RecurrentPlan | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.recurrent_delta_rule`."""
    final = q.new_empty(cu_seqlens.shape[0] - 1, v.shape[1], q.shape[2], v.shape[2], dtype=torch.float32)
    initial = None if initial_state is None else initial_state.contiguous()
    output = launch_recurrence(q, k, v, g, beta, initial, final, cu_seqlens, None, None, scale, normalise, plan)
    return output, final


def recurrent_delta_rule_update_triton(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    state_indices: torch.Tensor,
    num_accepted: torch.Tensor | None,
    scale: float,
    normalise: bool,
    plan: RecurrentPlan | None = None,
) -> torch.Tensor:
    """See :func:`ascend_kernels.recurrent_delta_rule_update`."""
    slots = (cu_seqlens, state_indices, num_accepted)
    return launch_recurrence(q, k, v, g, beta, state, state, *slots, scale, normalise, plan)
