"""The second half of low-rank adapters: ranks to a slice of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.lora.lora_expand.calls import calls
from ascend_kernels.ops.lora.lora_expand.naive import lora_expand_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.lora.lora_expand.triton import lora_expand_triton

    return lora_expand_triton


_operator = register(
    "lora_expand(Tensor(a!) y, Tensor h, Tensor b, Tensor adapters, int offset) -> ()",
    naive=lora_expand_naive,
    triton=_triton,
    calls=calls,
)


def lora_expand(y: torch.Tensor, h: torch.Tensor, b: torch.Tensor, adapters: torch.Tensor, offset: int = 0) -> None:
    """``y[t, offset : offset + width] += b[adapters[t]] @ h[t]``, in place; tokens without an adapter keep theirs.

    Args:
        y: fp16, bf16 or fp32 ``[tokens, columns]``, rows strided at will, columns neighbours.
        h: fp32, fp16 or bf16 ``[tokens, rank]``: what :func:`ascend_kernels.lora_shrink` gives.
        b: ``[adapters, width, rank]``, contiguous.
        adapters: int32 or int64 ``[tokens]``, contiguous; -1 is none.
        offset: first column of the slice that a merged layer's part has.

    Raises:
        ValueError: shapes that do not belong together, or a slice that ends behind the columns.
    """
    if y.dim() != 2 or b.dim() != 3 or h.shape != (y.shape[0], b.shape[2]) or adapters.shape != y.shape[:1]:
        raise ValueError(
            f"lora_expand: y {tuple(y.shape)}, h {tuple(h.shape)}, b {tuple(b.shape)}, adapters "
            f"{tuple(adapters.shape)}: [tokens, columns], [tokens, rank], [adapters, width, rank] and [tokens] go"
        )
    if not 0 <= offset <= y.shape[1] - b.shape[1]:
        raise ValueError(f"lora_expand: {b.shape[1]} columns from {offset} and y has {y.shape[1]}")
    if not b.is_contiguous() or not adapters.is_contiguous() or y.stride(1) != 1:
        raise ValueError(
            f"lora_expand: b (strides {b.stride()}) and adapters must be contiguous, columns of y (strides "
            f"{y.stride()}) neighbours"
        )
    _operator(y, h if h.stride(1) == 1 else h.contiguous(), b, adapters, offset)
