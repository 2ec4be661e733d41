"""The decay of Kimi Delta Attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.kda.kda_gate.calls import calls
from ascend_kernels.ops.kda.kda_gate.naive import kda_gate_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.kda.kda_gate.triton import kda_gate_triton

    return kda_gate_triton


def _fake(g: torch.Tensor, *_: object) -> torch.Tensor:
    return g.new_empty(g.shape, dtype=torch.float32)


_operator = register(
    "kda_gate(Tensor g, Tensor a_log, Tensor? bias, float softplus_beta, float threshold) -> Tensor",
    naive=kda_gate_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def kda_gate(
    g: torch.Tensor,
    a_log: torch.Tensor,
    bias: torch.Tensor | None = None,
    softplus_beta: float = 1.0,
    threshold: float = 20.0,
) -> torch.Tensor:
    """``-exp(a_log) softplus(g + bias)``: logarithms of the decays per key channel (Kimi Linear, arXiv 2510.26692).

    Args:
        g: fp16, bf16 or fp32 ``[tokens, heads, K]``.
        a_log: ``[heads]``.
        bias: ``heads x K`` numbers; None for none.
        softplus_beta: softplus is ``log(1 + exp(softplus_beta x)) / softplus_beta``,
        threshold: and ``x`` where ``softplus_beta x`` is above this.

    Returns:
        fp32 ``[tokens, heads, K]``.
    """
    return _operator(g, a_log.flatten(), bias, softplus_beta, threshold)
