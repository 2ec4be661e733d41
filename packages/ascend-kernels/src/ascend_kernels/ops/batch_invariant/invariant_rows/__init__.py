"""Reductions of rows whose results are the same bits in any batch: softmax, log-softmax, mean, RMS norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.batch_invariant.invariant_rows.calls import calls
from ascend_kernels.ops.batch_invariant.invariant_rows.naive import invariant_rows_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.batch_invariant.invariant_rows.triton import invariant_rows_triton

    return invariant_rows_triton


def _fake(x: torch.Tensor, weight: torch.Tensor | None, kind: str, eps: float) -> torch.Tensor:
    return x.new_empty(x.shape[0]) if kind == "mean" else x.new_empty(x.shape)


_operator = register(
    "invariant_rows(Tensor x, Tensor? weight, str kind, float eps) -> Tensor",
    naive=invariant_rows_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def _checked(name: str, x: torch.Tensor) -> torch.Tensor:
    if not x.is_floating_point() or x.dim() == 0:
        raise ValueError(f"{name}: {x.dtype} of shape {tuple(x.shape)}; fp16, bf16 or fp32 with a dimension goes")
    return x


def _along(name: str, x: torch.Tensor, dim: int, kind: str) -> torch.Tensor:
    moved = _checked(name, x).movedim(dim, -1)
    return _operator(moved.reshape(-1, moved.shape[-1]), None, kind, 0.0).view(moved.shape).movedim(-1, dim)


def invariant_softmax(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """``softmax`` along ``dim``, each row the same bits in any batch.

    Args:
        x: fp16, bf16 or fp32, any shape and strides.
        dim: the dimension that is normalised.

    Returns:
        A tensor of ``x``'s shape and dtype; arithmetic is in fp32, rounded once.

    Raises:
        ValueError: no float, or no dimension.
    """
    return _along("invariant_softmax", x, dim, "softmax")


def invariant_log_softmax(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """The logarithm of :func:`invariant_softmax`, computed without it."""
    return _along("invariant_log_softmax", x, dim, "log_softmax")


def invariant_mean(x: torch.Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> torch.Tensor:
    """The mean over one, several or all (None) dimensions, each the same bits in any batch.

    Args:
        x: fp16, bf16 or fp32, any shape and strides; no dimension that is averaged may be empty.
        dim: dimensions that are averaged.
        keepdim: keep them, with size 1.

    Returns:
        ``x``'s dtype; sums are in fp32, rounded once.

    Raises:
        ValueError: no float, or a mean of nothing.
    """
    _checked("invariant_mean", x)
    named = tuple(range(x.dim())) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = sorted(number % x.dim() for number in named)
    kept = [number for number in range(x.dim()) if number not in dims]
    if any(x.shape[number] == 0 for number in dims):
        raise ValueError(f"invariant_mean: the mean over dimensions {dims} of shape {tuple(x.shape)} is one of nothing")
    outer = [x.shape[number] for number in kept]
    width = x.numel() // max(1, torch.Size(outer).numel()) if x.numel() else 1
    rows = x.permute(*kept, *dims).reshape(torch.Size(outer).numel(), width)
    result = _operator(rows, None, "mean", 0.0)
    return result.view([1 if number in dims else x.shape[number] for number in range(x.dim())] if keepdim else outer)


def invariant_rms_norm(x: torch.Tensor, weight: torch.Tensor | None = None, eps: float = 1e-6) -> torch.Tensor:
    """:func:`ascend_kernels.rms_norm`, each row the same bits in any batch.

    Args:
        x: fp16, bf16 or fp32 ``[..., columns]``.
        weight: ``[columns]``, contiguous, or None.
        eps: added to the mean of the squares.

    Raises:
        ValueError: no float, or a weight of another length.
    """
    _checked("invariant_rms_norm", x)
    if weight is not None and (weight.shape != x.shape[-1:] or not weight.is_contiguous()):
        raise ValueError(
            f"invariant_rms_norm: rows have {x.shape[-1]} elements and the weight has shape {tuple(weight.shape)}"
        )
    return _operator(x.reshape(-1, x.shape[-1]), weight, "rms_norm", eps).view(x.shape)
