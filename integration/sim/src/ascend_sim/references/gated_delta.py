# SPDX-License-Identifier: Apache-2.0
"""The gated delta rule, a linear attention with a state S [Dv, Dk] per head and sequence.

For each token: ``S = exp(g) S``, then ``S += beta (v - S k) k^T`` and ``o = scale * S q``. Value head h uses query and
key head ``h // (Nv / Nk)``. The state is float32 within a call and rounds to its dtype where it is written.
"""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_doc

_CHUNK = 64


def _check(op: str, query: Tensor, key: Tensor, value: Tensor, state: Tensor) -> None:
    allowed = limits.numbers(op)
    if query.shape != key.shape or value.shape[0] != key.shape[0]:
        shapes = f"{list(query.shape)}, {list(key.shape)}, {list(value.shape)}"
        raise limits.refuse(op, "shapes of query, key, value", shapes, "[T, Nk, Dk] twice and [T, Nv, Dv]")
    heads, groups = value.shape[1], key.shape[1]
    if heads % groups or heads > allowed["max_heads"]:
        raise limits.refuse(op, "value heads", heads, f"multiples of {groups} up to {allowed['max_heads']}")
    expected = [heads, value.shape[2], key.shape[2]]
    if list(state.shape[1:]) != expected:
        raise limits.refuse(op, "state.shape[1:]", list(state.shape[1:]), f"{expected}, that is [Nv, Dv, Dk]")
    if max(expected[1:]) > allowed["max_head_size"]:
        raise limits.refuse(op, "head sizes", expected[1:], f"at most {allowed['max_head_size']}")


def _lengths(op: str, given: Tensor | None, tokens: int) -> list[int]:
    if given is None:
        raise limits.refuse(op, "actual_seq_lengths", None, "a tensor of lengths")
    each = [int(n) for n in given.tolist()]
    if sum(each) != tokens or min(each, default=0) < 0:
        raise limits.refuse(op, "actual_seq_lengths", each, f"lengths that sum to {tokens}, the number of tokens")
    return each


def _write_recurrence(
    op: str,
    tensors: tuple[Tensor, Tensor, Tensor],
    state: Tensor,
    beta: Tensor | None,
    scale: float | None,
    actual_seq_lengths: Tensor | None,
    ssm_state_indices: Tensor | None,
    num_accepted_tokens: Tensor | None,
    g: Tensor | None,
    gk: Tensor | None,
) -> Tensor:
    """Write each token's state to ``state`` and return the outputs [T, Nv, Dv] bfloat16."""
    query, key, value = tensors
    _check(op, query, key, value, state)
    each = torch.tensor(_lengths(op, actual_seq_lengths, value.shape[0]))
    longest = limits.numbers(op)["max_length"]
    if int(each.min()) < 1 or int(each.max()) > longest:
        raise limits.refuse(op, "actual_seq_lengths", each.tolist(), f"lengths from 1 to {longest}")
    if ssm_state_indices is None:
        raise limits.refuse(op, "ssm_state_indices", None, "a state for every token, [T]")
    slots = ssm_state_indices.long()
    if int(slots.min()) < 0 or int(slots.max()) >= state.shape[0]:
        raise limits.refuse(op, "ssm_state_indices", slots.tolist(), f"0 to {state.shape[0] - 1}")
    starts = each.cumsum(0) - each
    accepted = torch.ones_like(each) if num_accepted_tokens is None else num_accepted_tokens.long()
    if bool((accepted < 1).any()) or bool((accepted > each).any()):
        raise limits.refuse(op, "num_accepted_tokens", accepted.tolist(), f"1 to the lengths {each.tolist()}")
    fold = value.shape[1] // key.shape[1]
    q = query.float().mul(key.shape[2] ** -0.5 if scale is None else scale).repeat_interleave(fold, 1)
    k, v = key.float().repeat_interleave(fold, 1), value.float()
    out = torch.empty(value.shape, dtype=torch.bfloat16)
    # All sequences step together: S [sequences, Nv, Dv, Dk].
    current = state[slots[starts + accepted - 1]].float()
    for step in range(int(each.max())):
        going = (each > step).nonzero().squeeze(1)
        token = starts[going] + step
        part = current if len(going) == len(each) else current[going]
        if g is not None:
            part = part.mul_(g[token].float().exp()[..., None, None])
        if gk is not None:
            part = part.mul_(gk[token].float().exp().unsqueeze(-2))
        delta = v[token] - torch.matmul(part, k[token].unsqueeze(-1)).squeeze(-1)
        if beta is not None:
            delta = delta.mul_(beta[token].float().unsqueeze(-1))
        part.addcmul_(delta.unsqueeze(-1), k[token].unsqueeze(-2))
        out[token] = torch.matmul(part, q[token].unsqueeze(-1)).squeeze(-1).bfloat16()
        state[slots[token]] = part.to(state.dtype)
        if part is not current:
            current[going] = part
    return out


_RECURRENT = (
    f"{op_plugin_test('test_npu_recurrent_gated_delta_rule')}; "
    f"{wheel_doc('npu_recurrent_gated_delta_rule')}; gk: "
    + cann_doc("ops-transformer", "attention/recurrent_gated_delta_rule/README.md")
)


@reference("npu::npu_recurrent_gated_delta_rule", source=_RECURRENT, grade=Grade.GOLDEN)
def npu_recurrent_gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    state: Tensor,
    *,
    beta: Tensor | None = None,
    scale: float | None = None,
    actual_seq_lengths: Tensor | None = None,
    ssm_state_indices: Tensor | None = None,
    num_accepted_tokens: Tensor | None = None,
    g: Tensor | None = None,
    gk: Tensor | None = None,
) -> Tensor:
    """Step sequences of 1 to 8 tokens; the state after token t goes to ``state[ssm_state_indices[t]]``.

    A sequence starts from the state of its token number ``num_accepted_tokens - 1`` (the first by default).

    Shapes: query and key [T, Nk, Dk], value [T, Nv, Dv], state [blocks, Nv, Dv, Dk], beta and g [T, Nv], gk
    [T, Nv, Dk] (a decay per key channel).
    """
    rest = (beta, scale, actual_seq_lengths, ssm_state_indices, num_accepted_tokens, g, gk)
    return _write_recurrence("npu_recurrent_gated_delta_rule", (query, key, value), state, *rest)


@reference("npu::npu_recurrent_gated_delta_rule_functional", source=_RECURRENT, grade=Grade.GOLDEN)
def npu_recurrent_gated_delta_rule_functional(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    state: Tensor,
    *,
    beta: Tensor | None = None,
    scale: float | None = None,
    actual_seq_lengths: Tensor | None = None,
    ssm_state_indices: Tensor | None = None,
    num_accepted_tokens: Tensor | None = None,
    g: Tensor | None = None,
    gk: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`npu_recurrent_gated_delta_rule` on a copy of the state, which is returned second."""
    after = state.clone(memory_format=torch.contiguous_format)
    rest = (beta, scale, actual_seq_lengths, ssm_state_indices, num_accepted_tokens, g, gk)
    return _write_recurrence("npu_recurrent_gated_delta_rule", (query, key, value), after, *rest), after


def _chunks(tensor: Tensor, count: int) -> Tensor:
    """[L, N, ...] in float32 as [N, count, chunk, ...], zeros at the end."""
    padded = tensor.new_zeros(count * _CHUNK, *tensor.shape[1:], dtype=torch.float32)
    padded[: tensor.shape[0]] = tensor
    return padded.transpose(0, 1).unflatten(1, (count, _CHUNK))


def _sequence(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """One sequence by chunks: q and k [L, Nv, Dk], v [L, Nv, Dv], beta and g [L, Nv], state [Nv, Dk, Dv] float32."""
    length, count = q.shape[0], -(-q.shape[0] // _CHUNK)
    q, k, v, beta, g = (_chunks(tensor, count) for tensor in (q, k, v, beta, g))
    total = g.cumsum(-1)
    decay = (total.unsqueeze(-1) - total.unsqueeze(-2)).tril().exp().tril()
    k_beta, v_beta = k * beta.unsqueeze(-1), v * beta.unsqueeze(-1)
    # Within a chunk the deltas solve (I + strictly lower part) delta = beta (v - decayed S k).
    system = torch.matmul(k_beta, k.transpose(-1, -2)).mul_(decay).tril_(-1)
    solve = torch.cat((v_beta, k_beta * total.exp().unsqueeze(-1)), -1)
    u, w = torch.linalg.solve_triangular(system, solve, upper=False, unitriangular=True).split(
        (v.shape[-1], k.shape[-1]), -1
    )
    inner = torch.matmul(q, k.transpose(-1, -2)).mul_(decay)
    q_decayed = q * total.exp().unsqueeze(-1)
    k_decayed = k * (total[..., -1:] - total).exp().unsqueeze(-1)
    out = torch.empty_like(v)
    for i in range(count):
        delta = u[:, i] - torch.matmul(w[:, i], state)
        out[:, i] = torch.matmul(q_decayed[:, i], state) + torch.matmul(inner[:, i], delta)
        state = state * total[:, i, -1].exp()[:, None, None] + torch.matmul(k_decayed[:, i].transpose(-1, -2), delta)
    return out.flatten(1, 2)[:, :length].transpose(0, 1), state


@reference(
    "npu::npu_chunk_gated_delta_rule",
    source=f"{op_plugin_test('test_npu_chunk_gated_delta_rule')}; "
    + cann_doc("ops-transformer", "attention/chunk_gated_delta_rule/README.md"),
    grade=Grade.DOCUMENTED,
    note="the formula in float32; the vendor's golden rounds each step of a chunk to bfloat16",
)
def npu_chunk_gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    beta: Tensor | None = None,
    initial_state: Tensor | None = None,
    actual_seq_lengths: Tensor | None = None,
    scale: float | None = None,
    g: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Whole sequences from ``initial_state`` [B, Nv, Dv, Dk]; return outputs [T, Nv, Dv] bfloat16 and final states.

    Shapes: query and key [T, Nk, Dk], value [T, Nv, Dv], beta and g [T, Nv].
    """
    op = "npu_chunk_gated_delta_rule"
    if beta is None or initial_state is None:
        raise limits.refuse(op, "beta, initial_state", "not both given", "both")
    _check(op, query, key, value, initial_state)
    each = _lengths(op, actual_seq_lengths, value.shape[0])
    if len(each) != initial_state.shape[0]:
        raise limits.refuse(op, "initial_state.shape[0]", initial_state.shape[0], f"{len(each)}, one per sequence")
    fold = value.shape[1] // key.shape[1]
    q = query.float().mul(1.0 if scale is None else scale).repeat_interleave(fold, 1)
    k = key.float().repeat_interleave(fold, 1)
    decay = torch.zeros(value.shape[:2]) if g is None else g
    out = torch.empty(value.shape, dtype=torch.bfloat16)
    final = torch.empty_like(initial_state, memory_format=torch.contiguous_format)
    for sequence, (start, length) in enumerate(zip([0, *accumulate(each[:-1])], each, strict=True)):
        rows = slice(start, start + length)
        state = initial_state[sequence].float().transpose(-1, -2)
        if length:
            out[rows], state = _sequence(q[rows], k[rows], value[rows], beta[rows], decay[rows], state)
        final[sequence] = state.transpose(-1, -2)
    return out, final
