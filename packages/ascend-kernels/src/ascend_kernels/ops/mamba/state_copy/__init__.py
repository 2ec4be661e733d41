"""Copies between slots of a state cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.mamba.state_copy.calls import calls
from ascend_kernels.ops.mamba.state_copy.naive import state_copy_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.mamba.state_copy.triton import state_copy_triton

    return state_copy_triton


_operator = register(
    "state_copy(Tensor(a!) state, Tensor source, Tensor target) -> ()",
    naive=state_copy_naive,
    triton=_triton,
    calls=calls,
)


def state_copy(state: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> None:
    """``state[target[i]] = state[source[i]]`` for every pair, in place.

    A pair with a -1 does nothing. No slot may be the target of two pairs, or the target of one and the source of
    another: the pairs are copied in no order.

    Args:
        state: ``[slots, ...]`` of any dtype, every slot contiguous.
        source: int32 or int64 ``[pairs]``.
        target: like ``source``.

    Raises:
        ValueError: slots that are not contiguous, or indices of different shapes.
    """
    if not state[:1].is_contiguous() or source.shape != target.shape:
        raise ValueError(
            f"state_copy: each slot of the state must be contiguous (its strides are {state.stride()}), and source "
            f"{tuple(source.shape)} and target {tuple(target.shape)} must have one shape"
        )
    if state.numel():
        _operator(state, source, target)
