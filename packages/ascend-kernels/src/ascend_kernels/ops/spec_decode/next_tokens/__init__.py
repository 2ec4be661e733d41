"""Which token each request goes on with after verification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.spec_decode.next_tokens.calls import calls
from ascend_kernels.ops.spec_decode.next_tokens.naive import next_tokens_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.spec_decode.next_tokens.triton import next_tokens_triton

    return next_tokens_triton


def _fake(sampled: torch.Tensor, *_: object) -> tuple[torch.Tensor, torch.Tensor]:
    requests = sampled.shape[0]
    return sampled.new_empty(requests, dtype=torch.int32), sampled.new_empty(requests, dtype=torch.int32)


_operator = register(
    "next_tokens(Tensor sampled, Tensor backup, Tensor? discarded, int vocab) -> (Tensor, Tensor)",
    naive=next_tokens_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def next_tokens(
    sampled: torch.Tensor, backup: torch.Tensor, discarded: torch.Tensor | None, vocab: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The last valid token of each request and how many are valid.

    Args:
        sampled: int32 or int64 ``[requests, width]``, emitted tokens and placeholders
            (:func:`ascend_kernels.rejection_sample`), at least one column, any strides. A token is valid in
            ``[0, vocab)``.
        backup: int32 or int64 ``[requests]``, the token of a request without a valid one.
        discarded: bool ``[requests]``, requests whose tokens do not count (a prompt is not read to its end); None:
            none.
        vocab: how many tokens there are.

    Returns:
        int32 ``[requests]``: tokens; int32 ``[requests]``: counts.

    Raises:
        ValueError: the shapes do not belong together.
    """
    requests = sampled.shape[:1]
    vectors = {"backup": backup, "discarded": discarded}
    if sampled.dim() != 2 or sampled.shape[1] == 0:
        raise ValueError(f"next_tokens: sampled {tuple(sampled.shape)}: [requests, width] with columns is needed")
    for name, vector in vectors.items():
        if vector is not None and vector.shape != requests:
            raise ValueError(f"next_tokens: {name} {tuple(vector.shape)} for {requests[0]} requests")
    return _operator(sampled, backup, discarded, vocab)
