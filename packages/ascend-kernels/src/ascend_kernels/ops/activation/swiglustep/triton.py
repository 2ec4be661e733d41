"""The Triton launcher; the kernel is the family's."""

from __future__ import annotations

import torch

from ascend_kernels.ops.activation.elementwise.triton import activate_rows


def swiglustep_triton(x: torch.Tensor, limit: float) -> torch.Tensor:
    """See :func:`ascend_kernels.swiglustep`."""
    return activate_rows(x, "silu", gated=True, limit=limit, step=True)
