"""Routing that ignores the logits, to measure speed under an even load."""

from __future__ import annotations

import torch

from ascend_moe.routing.reference import Choice


def route_evenly(tokens: int, experts: int, top_k: int, device: torch.device | str) -> Choice:
    """Deal the experts to the tokens in turn: no expert gets more than one choice more than another.

    Args:
        tokens: rows of the result.
        experts: logical experts, without replicas.
        top_k: experts of a token, all different; each weighs ``1 / top_k``.
        device: of the result.

    Raises:
        ValueError: more experts a token than there are.
    """
    if top_k > experts:
        raise ValueError(f"top_k is {top_k}, but there are only {experts} experts")
    dealt = torch.arange(tokens * top_k, device=device, dtype=torch.int32).view(tokens, top_k) % experts
    return Choice(torch.full((tokens, top_k), 1 / top_k, device=device), dealt)
