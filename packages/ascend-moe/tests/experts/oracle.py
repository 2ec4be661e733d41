"""A mixture-of-experts layer in float64, one token and one expert at a time, from published formulas."""

import math
from collections.abc import Sequence

import torch


def activate(name: str, gate_up: torch.Tensor, limit: float | None = None) -> torch.Tensor:
    """`gate_up` [2 * intermediate] of one token."""
    half = len(gate_up) // 2
    gate, up = gate_up[:half], gate_up[half:]
    if name == "swigluoai":  # transformers 4.55 modeling_gpt_oss.py: GptOssExperts
        bound = 7.0 if limit is None else limit
        gate, up = gate_up[::2], gate_up[1::2]
        if bound:
            gate, up = gate.clamp(max=bound), up.clamp(-bound, bound)
        return gate / (1 + torch.exp(-1.702 * gate)) * (up + 1)
    if name == "swiglustep":
        bound = 7.0 if limit is None else limit
        silu = gate / (1 + torch.exp(-gate))
        return silu.clamp(max=bound) * up.clamp(-bound, bound) if bound else silu * up
    if name == "gelu":
        return gate * 0.5 * (1 + torch.erf(gate / math.sqrt(2))) * up
    if name == "gelu_tanh":
        return 0.5 * gate * (1 + torch.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3))) * up
    if limit:
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate / (1 + torch.exp(-gate)) * up


def dense_layer(
    tokens: torch.Tensor,
    weights: Sequence[Sequence[float]],
    experts: Sequence[Sequence[int]],
    gate_up: torch.Tensor,
    down: torch.Tensor,
    activation: str = "silu",
    gate_up_bias: torch.Tensor | None = None,
    down_bias: torch.Tensor | None = None,
    limit: float | None = None,
) -> torch.Tensor:
    """[tokens, hidden] in float64; `gate_up` [experts, 2 * intermediate, hidden], `down` [experts, hidden, ...]."""
    gate_up, down, result = gate_up.double(), down.double(), torch.zeros(tokens.shape, dtype=torch.float64)
    for row, token in enumerate(tokens.double()):
        for weight, expert in zip(weights[row], experts[row], strict=True):
            inner = gate_up[expert] @ token
            if gate_up_bias is not None:
                inner = inner + gate_up_bias[expert].double()
            outer = down[expert] @ activate(activation, inner, limit)
            if down_bias is not None:
                outer = outer + down_bias[expert].double()
            result[row] += weight * outer
    return result
