"""Log-probabilities and ranks of given tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.sampling.token_logprobs.calls import calls
from ascend_kernels.ops.sampling.token_logprobs.naive import token_logprobs_naive

MOST_TOKENS = 1024


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.sampling.token_logprobs.triton import token_logprobs_triton

    return token_logprobs_triton


def _fake(logits: torch.Tensor, token_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    logprobs = logits.new_empty(token_ids.shape, dtype=torch.float32)
    return logprobs, logits.new_empty(token_ids.shape[0], dtype=torch.int32)


_operator = register(
    "token_logprobs(Tensor logits, Tensor token_ids) -> (Tensor, Tensor)",
    naive=token_logprobs_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def token_logprobs(logits: torch.Tensor, token_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of given tokens without the table of all of them, and the rank of each row's first token.

    Args:
        logits: fp16, bf16 or fp32 ``[rows, vocab]``, any strides; -inf excludes a token.
        token_ids: int32 or int64 ``[rows, tokens]``, the sampled token first; at least 1, at most 1,024 tokens. An id
            outside the vocabulary (-1 as padding) has log-probability -inf.

    Returns:
        fp32 ``[rows, tokens]``: ``logit - log(sum(exp(logits)))``; int32 ``[rows]``: how many logits are not below
        that of the first token, itself among them, so that tied tokens share the last of their ranks.

    Raises:
        ValueError: the shapes do not belong together, or there are too few or too many tokens.
    """
    if logits.dim() != 2 or token_ids.dim() != 2 or logits.shape[0] != token_ids.shape[0] or logits.shape[1] == 0:
        raise ValueError(
            f"token_logprobs: logits {tuple(logits.shape)} and token ids {tuple(token_ids.shape)}: both are "
            "matrices with the same number of rows, and the vocabulary is not empty"
        )
    if not 1 <= token_ids.shape[1] <= MOST_TOKENS:
        raise ValueError(f"token_logprobs: {token_ids.shape[1]} tokens per row; from 1 to {MOST_TOKENS} are possible")
    return _operator(logits, token_ids)
