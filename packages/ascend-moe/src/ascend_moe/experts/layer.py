"""All of a rank's share of a mixture-of-experts layer, between the exchanges with other ranks."""

from __future__ import annotations

import torch

from ascend_moe.experts.activation import Activation
from ascend_moe.experts.mlp import ExpertWeights, expert_mlp
from ascend_moe.experts.permutation import add_up, sort_by_expert
from ascend_moe.routing import Choice


def local_numbers(experts: torch.Tensor, expert_map: torch.Tensor | None, local: int) -> torch.Tensor:
    """Numbers of local slots for numbers of experts; ``local`` for experts of other ranks.

    Args:
        experts: [tokens, top_k], from 0 to the number of all experts.
        expert_map: [all experts] int32, the slot here, or -1; None where every expert is here under its own number.
        local: the number of local slots.
    """
    if expert_map is None:
        return experts.int()
    slots = expert_map[experts.long()]
    return slots.masked_fill(slots < 0, local).int()


def compute(
    tokens: torch.Tensor,
    choice: Choice,
    weights: ExpertWeights,
    activation: Activation,
    expert_map: torch.Tensor | None = None,
) -> torch.Tensor:
    """The weighted sum of each token's local experts; zero for a token that has none here.

    Args:
        tokens: [tokens, hidden], on an NPU.
        choice: experts and weights of the tokens.
        weights: of the local experts.
        activation: of the experts.
        expert_map: see :func:`local_numbers`; may be changed in place between replays of a captured graph.

    Returns:
        [tokens, hidden].
    """
    if not len(tokens):
        return torch.empty_like(tokens)
    local = len(weights.gate_up)
    where = sort_by_expert(tokens, local_numbers(choice.experts, expert_map, local), local)
    return add_up(expert_mlp(where.rows, where.counts, weights, activation), where, choice.weights)
