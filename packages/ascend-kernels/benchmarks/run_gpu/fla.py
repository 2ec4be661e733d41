"""Gated linear attention with the delta rule: prefill in chunks, and decoding in slots of a state cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

import ascend_kernels
from ascend_kernels.ops.fla.recurrent_delta_rule.naive import recurrent_delta_rule_naive
from run_gpu.case import Case

TOKENS, HEADS, CHANNELS = 65536, 32, 128
CHECKED = 256
"""Leading tokens whose outputs are compared with the recurrence: four chunks."""


def delta_rule_inputs(channel_decays: bool) -> tuple[torch.Tensor, ...]:
    """bf16 q, k, v, fp32 logarithms of decays in [0.9, 1], and bf16 strengths of one long sequence."""
    q, k, v = (torch.randn(1, TOKENS, HEADS, CHANNELS, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    g = -0.1 * torch.rand(1, TOKENS, HEADS, *(CHANNELS,) * channel_decays, device="cuda")
    return q, k, v, g, torch.rand(1, TOKENS, HEADS, device="cuda").to(torch.bfloat16)


def delta_rule_reference(tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """The recurrence in float64 over the tokens that are checked."""
    wide = [tensor[0, :CHECKED].double() for tensor in tensors]
    starts = torch.tensor([0, CHECKED])
    return recurrent_delta_rule_naive(*wide, None, starts, CHANNELS**-0.5, True)[0]


def delta_rule_case(
    name: str, operator: Callable[..., Any], tensors: tuple[torch.Tensor, ...], peer: Callable[..., Any] | None
) -> Case:
    """A case of a chunked operator; inputs and outputs are the least that moves, intermediate results not."""
    peers = {}
    if peer is not None:
        peers["flash-linear-attention"] = lambda: peer(*tensors, output_final_state=True, use_qk_l2norm_in_kernel=True)
    return Case(
        f"{name} B1 T{TOKENS} H{HEADS} D{CHANNELS}",
        lambda: operator(*tensors, use_qk_l2norm=True)[0][0],
        lambda: delta_rule_reference(tensors),
        "recurrence",
        sum(tensor.nbytes for tensor in tensors) + tensors[2].nbytes,
        peers,
        rows=CHECKED,
    )


def decode_case() -> Case:
    """256 sequences of one token each, states fp32 in place."""
    sequences = 256
    q, k, v = (torch.randn(sequences, HEADS, CHANNELS, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    g, beta = -torch.rand(sequences, HEADS, device="cuda"), torch.rand(sequences, HEADS, device="cuda").bfloat16()
    state = torch.randn(sequences, HEADS, CHANNELS, CHANNELS, device="cuda")
    starts = torch.arange(sequences + 1, device="cuda", dtype=torch.int32)
    slots = torch.arange(sequences, device="cuda", dtype=torch.int32)

    def decode(state: torch.Tensor) -> torch.Tensor:
        return ascend_kernels.recurrent_delta_rule_update(q, k, v, g, beta, state, starts, slots, use_qk_l2norm=True)

    def reference() -> torch.Tensor:
        wide = [tensor[:8].double() for tensor in (q, k, v, g, beta, state)]
        return recurrent_delta_rule_naive(*wide, torch.arange(9), CHANNELS**-0.5, True)[0]

    peers = {}
    try:
        from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule
    except ModuleNotFoundError:
        pass
    else:
        options = {"initial_state": state, "output_final_state": True, "use_qk_l2norm_in_kernel": True}
        one = [tensor[:, None] for tensor in (q, k, v, g)]
        peers["flash-linear-attention"] = lambda: fused_recurrent_gated_delta_rule(*one, beta=beta[:, None], **options)
    return Case(
        f"recurrent_delta_rule_update B{sequences} H{HEADS} D{CHANNELS}",
        lambda: decode(state.clone()),
        reference,
        "recurrence",
        2 * state.nbytes,
        peers,
        rows=8,
        timed=lambda: decode(state),
    )


def cases() -> Iterator[Case]:
    try:
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule as peer
    except ModuleNotFoundError:
        peer = None
    yield delta_rule_case("gated_delta_rule", ascend_kernels.gated_delta_rule, delta_rule_inputs(False), peer)
    yield decode_case()
