"""RMS normalisation on ``npu_rms_norm`` and ``npu_add_rms_norm``."""

from __future__ import annotations

from typing import TypeAlias

import torch
from vllm.model_executor.custom_op import CustomOp
from vllm.model_executor.layers.layernorm import GemmaRMSNorm, RMSNorm
from vllm.model_executor.model_loader.weight_utils import default_weight_loader
from vllm.model_executor.utils import set_weight_attrs

Normalised: TypeAlias = torch.Tensor | tuple[torch.Tensor, torch.Tensor]


def rms_norm(x: torch.Tensor, residual: torch.Tensor | None, gamma: torch.Tensor, epsilon: float) -> Normalised:
    """``s = x + residual; y = s * rsqrt(mean(s**2, -1) + epsilon) * gamma``.

    Returns:
        ``y``, or ``(y, s)`` if there is a residual.
    """
    if residual is None:
        return torch.ops.npu.npu_rms_norm(x, gamma, epsilon)[0]
    normalised, _, summed = torch.ops.npu.npu_add_rms_norm(x, residual, gamma, epsilon)
    return normalised, summed


class AscendRMSNorm(RMSNorm):
    """``y = x * rsqrt(mean(x**2) + eps) * weight``."""

    def forward_oot(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> Normalised:
        if self.variance_size_override is not None:
            # The operators take the variance over the whole last dimension.
            return self.forward_native(x, residual)
        return rms_norm(x, residual, self.weight, self.variance_epsilon)


class AscendGemmaRMSNorm(GemmaRMSNorm):
    """``y = x * rsqrt(mean(x**2) + eps) * (1 + weight)``, with ``1 + weight`` kept beside the weight.

    The sum is renewed in place whenever the weight is loaded, so graphs captured earlier see new weights too.
    """

    gamma: torch.Tensor

    def __init__(self, hidden_size: int, eps: float = 1e-6) -> None:
        super().__init__(hidden_size, eps)
        self.register_buffer("gamma", torch.ones_like(self.weight), persistent=False)
        set_weight_attrs(self.weight, {"weight_loader": self._load_weight})

    def _load_weight(self, param: torch.nn.Parameter, loaded_weight: torch.Tensor) -> None:
        default_weight_loader(param, loaded_weight)
        self.gamma.copy_(param.data.float() + 1.0)

    def forward_oot(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> Normalised:
        return rms_norm(x, residual, self.gamma, self.variance_epsilon)


NORMS: dict[type[CustomOp], type[CustomOp]] = {RMSNorm: AscendRMSNorm, GemmaRMSNorm: AscendGemmaRMSNorm}
"""vLLM's class and the one that replaces it."""
