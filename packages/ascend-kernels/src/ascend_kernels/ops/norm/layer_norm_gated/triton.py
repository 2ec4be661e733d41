"""The Triton launcher; the kernel is the family's."""

from __future__ import annotations

import torch

from ascend_kernels.ops.norm.row_norm.triton import normalise_groups


def layer_norm_gated_triton(
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
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return y

    def groups(tensor: torch.Tensor | None) -> torch.Tensor | None:
        """``[groups, rows, group size]``: rows of one group share a weight."""
        if tensor is None:
            return None
        if tensor.stride(-1) != 1:
            tensor = tensor.contiguous()
        return tensor.reshape(-1, tensor.shape[-1]).unflatten(-1, (-1, group_size)).transpose(0, 1)

    several = x.shape[-1] != group_size
    normalise_groups(
        groups(x),
        weight.view(-1, group_size) if several else weight,
        eps,
        groups(y),
        gate=groups(gate),
        bias=bias,
        gate_first=not norm_before_gate,
        sigmoid=sigmoid,
        centred=not rms,
    )
    return y
