"""The Triton launcher; the kernel is the family's."""

from __future__ import annotations

import torch

from ascend_kernels.ops.activation.quantise.triton import quantise_rows


def dynamic_quant_triton(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.dynamic_quant`."""
    return quantise_rows(x, gated=False)
