"""From experts to their replicas, by maps that stay at one place on the device."""

from __future__ import annotations

import torch


def choose_replicas(
    experts: torch.Tensor, replicas: torch.Tensor, counts: torch.Tensor, first_turn: int = 0
) -> torch.Tensor:
    """The physical expert of every choice; the replicas of an expert take turns by token.

    Token t takes replica ``(t + first_turn + expert) mod counts[expert]``. Captured graphs go on to use the maps when
    their contents change.

    Args:
        experts: [tokens, top_k], logical experts.
        replicas: [experts, most replicas], the physical experts of each, padded.
        counts: [experts] int64, how many there are.
        first_turn: where this rank starts; ranks that hold the same tokens must start alike.

    Returns:
        [tokens, top_k], dtype of ``replicas``.
    """
    chosen = experts.long()
    token = torch.arange(len(chosen), device=chosen.device).unsqueeze(1)
    turn = (token + first_turn + chosen) % counts[chosen]
    return replicas[chosen, turn]


def count_choices(counts: torch.Tensor, physical: torch.Tensor, enabled: torch.Tensor) -> None:
    """Add every choice to its physical expert's count, in place; may be part of a captured graph.

    Args:
        counts: [physical experts] int32.
        physical: [tokens, top_k] int64.
        enabled: scalar bool on the device; False adds nothing.
    """
    counts.index_add_(0, physical.flatten(), enabled.to(counts.dtype).expand(physical.numel()))
