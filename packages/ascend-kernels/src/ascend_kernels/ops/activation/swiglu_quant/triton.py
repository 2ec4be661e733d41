"""The Triton launcher; the kernel is the family's."""

from __future__ import annotations

import torch

from ascend_kernels.ops.activation.quantise.triton import quantise_rows


def swiglu_quant_triton(
    x: torch.Tensor, group_list: torch.Tensor | None, cumulative: bool, alpha: float, bias: float, limit: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.swiglu_quant`."""
    return quantise_rows(
        x, gated=True, alpha=alpha, bias=bias, limit=limit, group_list=group_list, cumulative=cumulative
    )
