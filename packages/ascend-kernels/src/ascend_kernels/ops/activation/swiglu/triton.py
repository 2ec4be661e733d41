"""The Triton launcher; the kernel is the family's."""

from __future__ import annotations

import torch

from ascend_kernels.ops.activation.elementwise.triton import activate_rows


def swiglu_triton(x: torch.Tensor, alpha: float, bias: float, limit: float, interleaved: bool) -> torch.Tensor:
    """See :func:`ascend_kernels.swiglu`."""
    return activate_rows(x, "silu", gated=True, interleaved=interleaved, alpha=alpha, bias=bias, limit=limit)
