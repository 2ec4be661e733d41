"""Matrix products whose rows are the same bits in any batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.batch_invariant.invariant_matmul.calls import calls
from ascend_kernels.ops.batch_invariant.invariant_matmul.naive import invariant_matmul_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.batch_invariant.invariant_matmul.triton import invariant_matmul_triton

    return invariant_matmul_triton


def _fake(x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return x.new_empty(x.shape[0], x.shape[1], y.shape[2])


_operator = register(
    "invariant_matmul(Tensor x, Tensor y, Tensor? bias) -> Tensor",
    naive=invariant_matmul_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def invariant_matmul(x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """``x @ y + bias``, each row of the result the same bits whatever other rows ``x`` has.

    The order of a sum's parts follows from the dtype and the device alone.

    Args:
        x: fp16, bf16 or fp32 ``[..., M, K]``, any strides.
        y: of the same dtype, ``[K, N]`` or ``[..., K, N]``; leading dimensions broadcast as in :func:`torch.matmul`.
        bias: ``[N]``, or None.

    Returns:
        Contiguous ``[..., M, N]`` of ``x``'s dtype, summed up in fp32 and rounded once.

    Raises:
        ValueError: shapes or dtypes that do not go together.
    """
    if x.dim() < 2 or y.dim() < 2 or x.shape[-1] != y.shape[-2] or x.dtype != y.dtype or not x.is_floating_point():
        raise ValueError(
            f"invariant_matmul: {x.dtype} {tuple(x.shape)} times {y.dtype} {tuple(y.shape)}: matrices [..., M, K] and "
            "[..., K, N] of one float dtype go"
        )
    if bias is not None and bias.shape != y.shape[-1:]:
        raise ValueError(f"invariant_matmul: bias of shape {tuple(bias.shape)} and {y.shape[-1]} columns")
    rows, columns = x.shape[-2], y.shape[-1]
    if y.dim() == 2:
        # One product over all rows.
        return _operator(x.reshape(1, -1, x.shape[-1]), y[None], bias).view(*x.shape[:-1], columns)
    leading = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    left = x.expand(*leading, *x.shape[-2:]).reshape(-1, *x.shape[-2:])
    right = y.expand(*leading, *y.shape[-2:]).reshape(-1, *y.shape[-2:])
    return _operator(left, right, bias).view(*leading, rows, columns)


def invariant_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """``x @ weight.T + bias`` as :func:`invariant_matmul` computes it.

    Args:
        x: ``[..., K]``.
        weight: ``[N, K]``.
        bias: ``[N]``, or None.

    Returns:
        ``[..., N]``.
    """
    return invariant_matmul(x.reshape(-1, x.shape[-1]), weight.mT, bias).view(*x.shape[:-1], weight.shape[0])
