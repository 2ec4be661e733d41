"""Gates of the gated delta rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.gdn_gating.calls import calls
from ascend_kernels.ops.fla.gdn_gating.naive import gdn_gating_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.gdn_gating.triton import gdn_gating_triton

    return gdn_gating_triton


def _fake(a_log: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *_: object) -> tuple[torch.Tensor, torch.Tensor]:
    return a.new_empty(a.shape, dtype=torch.float32), b.new_empty(b.shape)


_operator = register(
    "gdn_gating(Tensor a_log, Tensor a, Tensor b, Tensor dt_bias, float softplus_beta, float threshold) "
    "-> (Tensor, Tensor)",
    naive=gdn_gating_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def gdn_gating(
    a_log: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    dt_bias: torch.Tensor,
    softplus_beta: float = 1.0,
    threshold: float = 20.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``g = -exp(a_log) softplus(a + dt_bias)`` and ``beta = sigmoid(b)`` (the gates of Qwen3-Next's linear attention).

    Args:
        a_log: ``[heads]``.
        a: ``[tokens, heads]``; tokens may be strided.
        b: ``[tokens, heads]``, likewise.
        dt_bias: ``[heads]``.
        softplus_beta: softplus is ``log(1 + exp(softplus_beta x)) / softplus_beta``,
        threshold: and ``x`` where ``softplus_beta x`` is above this.

    Returns:
        ``g`` fp32 and ``beta`` in the dtype of ``b``, both ``[tokens, heads]``.
    """
    return _operator(a_log, a, b, dt_bias, softplus_beta, threshold)
