"""The definition in torch."""

from __future__ import annotations

import torch


def layer_norm_gated_naive(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    gate: torch.Tensor | None,
    eps: float,
    group_size: int,
    norm_before_gate: bool,
    rms: bool,
    sigmoid: bool,
) -> torch.Tensor:
    """See :func:`ascend_kernels.layer_norm_gated`."""
    values = x.float()
    factor = None
    if gate is not None:
        factor = gate.float().sigmoid() if sigmoid else torch.nn.functional.silu(gate.float())
    if factor is not None and not norm_before_gate:
        values = values * factor
    groups = values.unflatten(-1, (-1, group_size))
    if not rms:
        groups = groups - groups.mean(-1, keepdim=True)
    groups = groups * torch.rsqrt(groups.square().mean(-1, keepdim=True) + eps)
    values = groups.flatten(-2) * weight.float()
    if bias is not None:
        values = values + bias.float()
    if factor is not None and norm_before_gate:
        values = values * factor
    return values.to(x.dtype)
