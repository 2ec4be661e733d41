"""Probabilities of tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.sampling.probabilities.calls import calls
from ascend_kernels.ops.sampling.probabilities.naive import probabilities_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.sampling.probabilities.triton import probabilities_triton

    return probabilities_triton


def _fake(logits: torch.Tensor, temperature: torch.Tensor | None, log: bool) -> torch.Tensor:
    return torch.empty_like(logits, dtype=torch.float32, memory_format=torch.contiguous_format)


_operator = register(
    "probabilities(Tensor logits, Tensor? temperature, bool log) -> Tensor",
    naive=probabilities_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def probabilities(logits: torch.Tensor, temperature: torch.Tensor | None = None, log: bool = False) -> torch.Tensor:
    """The softmax of each row, ``softmax(logits / temperature)``, or its logarithm, in fp32.

    Args:
        logits: fp16, bf16 or fp32 ``[rows, vocab]``, or ``[..., vocab]`` without temperatures; -inf excludes a token.
        temperature: fp32 ``[rows]``; 0, as greedy requests have it, counts as 1.
        log: return log-probabilities.

    Returns:
        fp32, contiguous, of the logits' shape. A row of nothing but -inf is NaN, as in torch.

    Raises:
        ValueError: there is not one temperature per row.
    """
    if temperature is not None and (logits.dim() != 2 or temperature.shape != logits.shape[:1]):
        raise ValueError(
            f"probabilities: logits {tuple(logits.shape)} and temperatures {tuple(temperature.shape)}: "
            "with temperatures, logits are [rows, vocab] and there is one temperature per row"
        )
    return _operator(logits, temperature, log)
