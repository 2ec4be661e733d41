"""The first half of low-rank adapters: hidden states to ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.lora.lora_shrink.calls import calls
from ascend_kernels.ops.lora.lora_shrink.naive import lora_shrink_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.lora.lora_shrink.triton import lora_shrink_triton

    return lora_shrink_triton


def _fake(x: torch.Tensor, a: torch.Tensor, *_: object) -> torch.Tensor:
    return x.new_empty(x.shape[0], a.shape[1], dtype=torch.float32)


_operator = register(
    "lora_shrink(Tensor x, Tensor a, Tensor adapters, float scale) -> Tensor",
    naive=lora_shrink_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def lora_shrink(x: torch.Tensor, a: torch.Tensor, adapters: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """``y[t] = scale * a[adapters[t]] @ x[t]`` (Hu et al. 2021, arXiv 2106.09685), 0 for tokens without an adapter.

    Args:
        x: fp16, bf16 or fp32 ``[tokens, columns]``, rows strided at will.
        a: ``[adapters, rank, columns]``, contiguous.
        adapters: int32 or int64 ``[tokens]``, contiguous; -1 is none.
        scale: multiplies the result.

    Returns:
        fp32 ``[tokens, rank]``.

    Raises:
        ValueError: shapes that do not belong together.
    """
    if x.dim() != 2 or a.dim() != 3 or a.shape[2] != x.shape[1] or adapters.shape != x.shape[:1]:
        raise ValueError(
            f"lora_shrink: x {tuple(x.shape)}, a {tuple(a.shape)}, adapters {tuple(adapters.shape)}: [tokens, "
            "columns], [adapters, rank, columns] and [tokens] go"
        )
    if not a.is_contiguous() or not adapters.is_contiguous():
        raise ValueError(f"lora_shrink: a (strides {a.stride()}) and adapters must be contiguous")
    return _operator(x if x.stride(1) == 1 else x.contiguous(), a, adapters, scale)
