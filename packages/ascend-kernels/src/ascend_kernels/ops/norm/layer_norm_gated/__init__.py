"""Normalisation of groups of a row, gated before or after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.norm.layer_norm_gated.calls import calls
from ascend_kernels.ops.norm.layer_norm_gated.naive import layer_norm_gated_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.norm.layer_norm_gated.triton import layer_norm_gated_triton

    return layer_norm_gated_triton


def _fake(x: torch.Tensor, *_: object) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_operator = register(
    "layer_norm_gated(Tensor x, Tensor weight, Tensor? bias, Tensor? gate, float eps, int group_size, "
    "bool norm_before_gate, bool rms, bool sigmoid) -> Tensor",
    naive=layer_norm_gated_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def layer_norm_gated(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    gate: torch.Tensor | None = None,
    *,
    eps: float = 1e-6,
    group_size: int | None = None,
    norm_before_gate: bool = True,
    rms: bool = True,
    activation: Literal["silu", "sigmoid"] = "silu",
) -> torch.Tensor:
    """``norm(x) * f(gate)``, or ``norm(x * f(gate))``, the norm over each group of a row (Dao and Gu 2024, Mamba-2).

    Args:
        x: fp16, bf16 or fp32 ``[..., columns]``.
        weight: ``[columns]``.
        bias: ``[columns]`` or None.
        gate: the shape and dtype of ``x``, or None for no gate.
        eps: added to the mean of the squares.
        group_size: columns that are normalised together; all of them by default.
        norm_before_gate: whether the gate multiplies the result of the norm, or its input.
        rms: root-mean-square norm; otherwise the mean is subtracted first (layer norm).
        activation: the gate's function.

    Returns:
        A contiguous tensor of ``x``'s shape and dtype; arithmetic is in fp32, rounded once.

    Raises:
        ValueError: shapes do not belong together, or the activation is unknown.
    """
    columns = x.shape[-1]
    size = columns if group_size is None else group_size
    if weight.shape != (columns,) or (bias is not None and bias.shape != (columns,)) or columns % size:
        raise ValueError(
            f"layer_norm_gated: weight (and bias) must have {columns} elements, as a row has, and groups of {size} "
            f"must divide it; the weight has shape {tuple(weight.shape)}"
        )
    if gate is not None and gate.shape != x.shape:
        raise ValueError(f"layer_norm_gated: x has shape {tuple(x.shape)} and the gate {tuple(gate.shape)}")
    if activation not in ("silu", "sigmoid"):
        raise ValueError(f"layer_norm_gated: activation {activation!r}; silu or sigmoid are allowed")
    return _operator(x, weight, bias, gate, eps, size, norm_before_gate, rms, activation == "sigmoid")
