"""The definition in torch: token by token."""

from __future__ import annotations

import torch

from ascend_kernels.ops.fla.recurrent_delta_rule.naive import recurrent_delta_rule_naive


def chunk_kda_naive(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    scale: float,
    normalise: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.chunk_kda`."""
    return recurrent_delta_rule_naive(q, k, v, g, beta, initial_state, cu_seqlens, scale, normalise)
