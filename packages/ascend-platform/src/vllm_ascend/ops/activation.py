"""Gated activations on the vendor's fused operators."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from vllm.model_executor.custom_op import CustomOp
from vllm.model_executor.layers.activation import GeluAndMul, QuickGELU, SiluAndMul


class AscendSiluAndMul(SiluAndMul):
    """``silu(x[..., :d]) * x[..., d:]`` for ``x`` of width ``2 * d``."""

    def forward_oot(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.npu.npu_swiglu(x)


class AscendGeluAndMul(GeluAndMul):
    """``gelu(x[..., :d]) * x[..., d:]`` for ``x`` of width ``2 * d``, exact or tanh-approximated."""

    def forward_oot(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, dim=-1)
        # In place on the fresh activation; npu_geglu would write the activation out as a second result.
        return F.gelu(gate, approximate=self.approximate).mul_(up)


class AscendQuickGELU(QuickGELU):
    """``x * sigmoid(1.702 * x)``."""

    def forward_oot(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.npu.npu_fast_gelu(x)


ACTIVATIONS: dict[type[CustomOp], type[CustomOp]] = {
    SiluAndMul: AscendSiluAndMul,
    GeluAndMul: AscendGeluAndMul,
    QuickGELU: AscendQuickGELU,
}
"""vLLM's class and the one that replaces it."""
