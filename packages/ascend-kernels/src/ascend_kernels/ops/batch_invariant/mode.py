"""A context in which torch's own operators give the same bits in any batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ascend_kernels.ops.batch_invariant.invariant_matmul import invariant_linear, invariant_matmul
from ascend_kernels.ops.batch_invariant.invariant_rows import (
    invariant_log_softmax,
    invariant_mean,
    invariant_rms_norm,
    invariant_softmax,
)

aten = torch.ops.aten


def _addmm(bias: torch.Tensor, x: torch.Tensor, y: torch.Tensor, *, beta: float = 1, alpha: float = 1) -> torch.Tensor:
    if beta == alpha == 1 and bias.shape == y.shape[-1:]:
        return invariant_matmul(x, y, bias)
    return beta * bias + alpha * invariant_matmul(x, y)


def _matmul(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    left, right = x[None] if x.dim() == 1 else x, y[:, None] if y.dim() == 1 else y
    result = invariant_matmul(left, right)
    result = result.squeeze(-2) if x.dim() == 1 else result
    return result.squeeze(-1) if y.dim() == 1 else result


def _softmax(x: torch.Tensor, dim: int, widen: bool) -> torch.Tensor:
    return invariant_softmax(x.float() if widen else x, dim)


def _log_softmax(x: torch.Tensor, dim: int, widen: bool) -> torch.Tensor:
    return invariant_log_softmax(x.float() if widen else x, dim)


def _mean(
    x: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    return invariant_mean(x if dtype is None else x.to(dtype), tuple(dim) if dim else None, keepdim)


def _mean_of_all(x: torch.Tensor, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    return _mean(x, dtype=dtype)


def _rms_norm(
    x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor | None = None, eps: float | None = None
) -> torch.Tensor:
    epsilon = torch.finfo(x.dtype).eps if eps is None else eps
    flat = x.reshape(*x.shape[: x.dim() - len(shape)], -1)
    return invariant_rms_norm(flat, None if weight is None else weight.reshape(-1), epsilon).view(x.shape)


ROUTES: Mapping[Any, Callable[..., torch.Tensor]] = {
    aten.mm.default: invariant_matmul,
    aten.bmm.default: invariant_matmul,
    aten.addmm.default: _addmm,
    aten.matmul.default: _matmul,
    aten.linear.default: invariant_linear,
    aten._softmax.default: _softmax,
    aten._log_softmax.default: _log_softmax,
    aten.mean.dim: _mean,
    aten.mean.default: _mean_of_all,
    aten.rms_norm.default: _rms_norm,
}
"""What runs instead of each of torch's operators."""


class batch_invariant(TorchDispatchMode):  # noqa: N801  used as a function: ``with batch_invariant():``
    """Within ``with batch_invariant():`` the operators of :data:`ROUTES` run on float tensors of this library.

    Scoped and of this thread only; nothing of torch is rebound. It sees operators that run eagerly, without gradients:
    code compiled by ``torch.compile`` calls the functions of this package itself. Tensors that are no floats of up
    to 32 bits keep torch's operator.
    """

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None
    ) -> Any:
        """Run the route of an operator, or the operator."""
        route = ROUTES.get(function)
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        if route is not None and all(
            value.dtype in (torch.float32, torch.float16, torch.bfloat16) for value in tensors
        ):
            return route(*arguments, **(keywords or {}))
        return function(*arguments, **(keywords or {}))
