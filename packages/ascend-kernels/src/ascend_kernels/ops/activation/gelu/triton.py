"""The Triton launcher; the kernel is the family's."""

from __future__ import annotations

import torch

from ascend_kernels.ops.activation.elementwise.triton import activate_rows


def gelu_triton(x: torch.Tensor, approximate: str) -> torch.Tensor:
    """See :func:`ascend_kernels.gelu`."""
    kind = {"none": "gelu", "tanh": "gelu_tanh", "quick": "silu"}[approximate]
    return activate_rows(x, kind, gated=False, alpha=1.702 if approximate == "quick" else 1.0)
