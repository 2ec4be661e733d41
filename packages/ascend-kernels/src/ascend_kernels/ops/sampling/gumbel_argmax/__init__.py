"""A sample of each row by the Gumbel-max trick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.sampling.gumbel_argmax.calls import calls
from ascend_kernels.ops.sampling.gumbel_argmax.naive import gumbel_argmax_naive
from ascend_kernels.ops.sampling.rows.checks import check_requests


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.sampling.gumbel_argmax.triton import gumbel_argmax_triton

    return gumbel_argmax_triton


def _fake(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    positions: torch.Tensor,
    min_p: torch.Tensor | None,
    request_of_row: torch.Tensor | None,
) -> torch.Tensor:
    return logits.new_empty(logits.shape[0], dtype=torch.int64)


_operator = register(
    "gumbel_argmax(Tensor logits, Tensor temperature, Tensor seeds, Tensor positions, Tensor? min_p, "
    "Tensor? request_of_row) -> Tensor",
    naive=gumbel_argmax_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def gumbel_argmax(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    positions: torch.Tensor,
    min_p: torch.Tensor | None = None,
    request_of_row: torch.Tensor | None = None,
) -> torch.Tensor:
    """Sample a token per row: ``argmax(logits / temperature - log(e))`` with Exp(1) noise ``e`` (Gumbel 1954).

    The noise is a function of the request's seed, the row's position and the token alone, so that a request's tokens
    depend on no other request and come out again. Where the temperature is 0 the result is the argmax of the logits.
    Of tied tokens the one with the lowest id wins; a row of nothing but -inf gives 0.

    Args:
        logits: fp16, bf16 or fp32 ``[rows, vocab]``, any strides; -inf excludes a token.
        temperature: fp32 ``[requests]``.
        seeds: int64 ``[requests]``.
        positions: int64 ``[rows]``, the position of the token that is sampled in its sequence; its lower 32 bits count.
        min_p: fp32 ``[requests]``; a token less probable than this share of the most probable one is excluded.
        request_of_row: int32 or int64 ``[rows]``, the request of each row; None: row ``i`` is request ``i``.

    Returns:
        int64 ``[rows]``.

    Raises:
        ValueError: the shapes do not belong together.
    """
    check_requests("gumbel_argmax", logits, request_of_row, temperature=temperature, seeds=seeds, min_p=min_p)
    if positions.shape != logits.shape[:1]:
        raise ValueError(f"gumbel_argmax: {tuple(positions.shape)} positions for {logits.shape[0]} rows")
    return _operator(logits, temperature, seeds, positions, min_p, request_of_row)
