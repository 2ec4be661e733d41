"""The definition in torch."""

from __future__ import annotations

import torch

from ascend_kernels.ops.activation.dynamic_quant.naive import dynamic_quant_naive
from ascend_kernels.ops.activation.swiglu.naive import swiglu_naive


def swiglu_quant_naive(
    x: torch.Tensor, group_list: torch.Tensor | None, cumulative: bool, alpha: float, bias: float, limit: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.swiglu_quant`."""
    quantised = torch.empty((*x.shape[:-1], x.shape[-1] // 2), dtype=torch.int8, device=x.device)
    scales = torch.empty(x.shape[:-1], dtype=torch.float32, device=x.device)
    total = x.shape[0]
    if group_list is not None:
        total = int(group_list[-1] if cumulative else group_list.sum()) if group_list.numel() else 0
    active = swiglu_naive(x[:total].float(), alpha, bias, limit, False)
    quantised[:total], scales[:total] = dynamic_quant_naive(active)
    return quantised, scales
