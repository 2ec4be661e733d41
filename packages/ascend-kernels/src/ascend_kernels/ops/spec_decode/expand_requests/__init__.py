"""Values of requests as values of their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.spec_decode.expand_requests.calls import calls
from ascend_kernels.ops.spec_decode.expand_requests.naive import expand_requests_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.spec_decode.expand_requests.triton import expand_requests_triton

    return expand_requests_triton


def _fake(values: torch.Tensor, cu_counts: torch.Tensor, rows: int, *_: object) -> torch.Tensor:
    return values.new_empty(rows)


_operator = register(
    "expand_requests(Tensor values, Tensor cu_counts, SymInt rows, float replace, float replacement) -> Tensor",
    naive=expand_requests_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def expand_requests(
    values: torch.Tensor, cu_counts: torch.Tensor, rows: int, replace: float = 0.0, replacement: float = 0.0
) -> torch.Tensor:
    """Repeat each request's value for each of its rows; a value equal to ``replace`` becomes ``replacement``.

    Temperatures of greedy requests, which are 0, so become 1 before logits are divided by them.

    Args:
        values: fp32, int32 or int64 ``[requests]``.
        cu_counts: int32 ``[requests]``, how many rows this and the requests before it have; not decreasing.
        rows: ``cu_counts[-1]``, known to the caller from the shape of the logits.
        replace: the value to replace.
        replacement: what it becomes.

    Returns:
        ``[rows]``, of the dtype of the values.

    Raises:
        ValueError: there is not one count per value.
    """
    if values.dim() != 1 or cu_counts.shape != values.shape:
        raise ValueError(f"expand_requests: {tuple(values.shape)} values and {tuple(cu_counts.shape)} counts: one each")
    return _operator(values, cu_counts, rows, replace, replacement)
