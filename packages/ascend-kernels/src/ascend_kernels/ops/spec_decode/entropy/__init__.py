"""How undecided a distribution is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.spec_decode.entropy.calls import calls
from ascend_kernels.ops.spec_decode.entropy.naive import entropy_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.spec_decode.entropy.triton import entropy_triton

    return entropy_triton


def _fake(probs: torch.Tensor) -> torch.Tensor:
    return probs.new_empty(probs.shape[0], dtype=torch.float32)


_operator = register("entropy(Tensor probs) -> Tensor", naive=entropy_naive, triton=_triton, calls=calls, fake=_fake)


def entropy(probs: torch.Tensor) -> torch.Tensor:
    """The entropy of each row, ``-sum(p * log(p + 1e-10))``, in nats: what entropy verification of drafts reads.

    Args:
        probs: fp16, bf16 or fp32 ``[rows, columns]``, any strides.

    Returns:
        fp32 ``[rows]``.

    Raises:
        ValueError: the probabilities are no matrix with columns.
    """
    if probs.dim() != 2 or probs.shape[1] == 0:
        raise ValueError(f"entropy: probabilities {tuple(probs.shape)}: [rows, columns] with columns is needed")
    return _operator(probs)
