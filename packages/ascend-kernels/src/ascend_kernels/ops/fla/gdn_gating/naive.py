"""The definition in torch."""

from __future__ import annotations

import torch


def gdn_gating_naive(
    a_log: torch.Tensor, a: torch.Tensor, b: torch.Tensor, dt_bias: torch.Tensor, softplus_beta: float, threshold: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.gdn_gating`."""
    step = torch.nn.functional.softplus(a.float() + dt_bias.float(), softplus_beta, threshold)
    return -a_log.float().exp() * step, b.float().sigmoid().to(b.dtype)
