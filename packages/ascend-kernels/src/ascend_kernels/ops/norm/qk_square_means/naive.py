"""The definition in torch."""

from __future__ import annotations

import torch


def qk_square_means_naive(qkv: torch.Tensor, q_columns: int, k_columns: int, ranks: int) -> torch.Tensor:
    """See :func:`ascend_kernels.qk_square_means`."""
    query, key = qkv[:, : q_columns + k_columns].float().split([q_columns, k_columns], dim=-1)
    return torch.stack([part.square().mean(-1) / ranks for part in (query, key)], dim=-1)
