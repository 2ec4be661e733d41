"""The definition in torch."""

from __future__ import annotations

import torch


def state_copy_naive(state: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> None:
    """See :func:`ascend_kernels.state_copy`."""
    pairs = [pair for pair in zip(source.tolist(), target.tolist(), strict=True) if min(pair) >= 0]
    read = [state[begin].clone() for begin, _ in pairs]
    for (_, end), slot in zip(pairs, read, strict=True):
        state[end] = slot
