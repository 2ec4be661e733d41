"""Attention over parts of a context, put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.attention.merge_attention.calls import calls
from ascend_kernels.ops.attention.merge_attention.naive import merge_attention_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.attention.merge_attention.triton import merge_attention_triton

    return merge_attention_triton


def _fake(outputs: torch.Tensor, lses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return outputs.new_empty(outputs.shape[1:]), lses.new_empty(lses.shape[1:])


_operator = register(
    "merge_attention(Tensor outputs, Tensor lses) -> (Tensor, Tensor)",
    naive=merge_attention_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def merge_attention(outputs: torch.Tensor, lses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Merge attention over disjoint parts of a context by their log-sum-exps (FlashDecoding; arXiv 2501.01005, 2.2).

    ``output = sum over p of exp(lses[p] - lse) * outputs[p]`` with ``lse = log(sum over p of exp(lses[p]))``.

    Args:
        outputs: fp16, bf16 or fp32 ``[parts, tokens, heads, size]``, each part normalised by itself.
        lses: fp32 ``[parts, tokens, heads]``, natural logarithms; -inf where a part has seen nothing, whose output
            then may hold anything.

    Returns:
        ``[tokens, heads, size]`` of the outputs' dtype, and fp32 ``[tokens, heads]``; 0 and -inf where no part has
        seen anything.

    Raises:
        ValueError: shapes or dtypes that do not go together.
    """
    if outputs.dim() != 4 or outputs.shape[0] == 0 or lses.shape != outputs.shape[:3] or lses.dtype != torch.float32:
        raise ValueError(
            f"merge_attention: outputs {tuple(outputs.shape)} and lses {lses.dtype} {tuple(lses.shape)}: [parts, "
            "tokens, heads, size] with a part or more, and fp32 [parts, tokens, heads] go"
        )
    return _operator(outputs, lses)
