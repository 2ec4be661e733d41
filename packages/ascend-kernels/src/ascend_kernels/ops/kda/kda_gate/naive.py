"""The definition in torch."""

from __future__ import annotations

import torch


def kda_gate_naive(
    g: torch.Tensor, a_log: torch.Tensor, bias: torch.Tensor | None, softplus_beta: float, threshold: float
) -> torch.Tensor:
    """See :func:`ascend_kernels.kda_gate`."""
    step = g.float() if bias is None else g.float() + bias.float().view(g.shape[1:])
    return -a_log.float().exp()[:, None] * torch.nn.functional.softplus(step, softplus_beta, threshold)
