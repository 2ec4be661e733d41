"""The two projections of gated delta rule layers, taken apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.fla.qkvzba_split.calls import calls
from ascend_kernels.ops.fla.qkvzba_split.naive import qkvzba_split_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.fla.qkvzba_split.triton import qkvzba_split_triton

    return qkvzba_split_triton


def _fake(
    mixed_qkvz: torch.Tensor, mixed_ba: torch.Tensor, key_heads: int, value_heads: int, key_dim: int, value_dim: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    tokens = mixed_qkvz.shape[0]
    qkv = mixed_qkvz.new_empty(tokens, 2 * key_heads * key_dim + value_heads * value_dim)
    z = mixed_qkvz.new_empty(tokens, value_heads, value_dim)
    return qkv, z, mixed_ba.new_empty(tokens, value_heads), mixed_ba.new_empty(tokens, value_heads)


_operator = register(
    "qkvzba_split(Tensor mixed_qkvz, Tensor mixed_ba, int key_heads, int value_heads, int key_dim, int value_dim) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    naive=qkvzba_split_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def qkvzba_split(
    mixed_qkvz: torch.Tensor, mixed_ba: torch.Tensor, key_heads: int, value_heads: int, key_dim: int, value_dim: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Take apart what Qwen3-Next's two input projections put next to each other, key head by key head.

    Args:
        mixed_qkvz: ``[tokens, key heads x (2 K + 2 r V)]``: of every key head its query, key, and the values and output
            gates of its ``r = value heads / key heads`` value heads. Tokens may be strided.
        mixed_ba: ``[tokens, key heads x 2 r]``: of every key head ``r`` numbers for beta and ``r`` for the decay.
        key_heads: key heads.
        value_heads: value heads.
        key_dim: K.
        value_dim: V.

    Returns:
        ``[queries | keys | values]`` of all heads, one row per token (the input of the convolution); output gates
        ``[tokens, value heads, V]``; ``b`` and ``a``, each ``[tokens, value heads]``. All are contiguous.

    Raises:
        ValueError: the widths are not those of the heads.
    """
    group, rest = divmod(value_heads, key_heads)
    widths = (key_heads * 2 * (key_dim + group * value_dim), 2 * value_heads)
    if rest or (mixed_qkvz.shape[1], mixed_ba.shape[1]) != widths:
        raise ValueError(
            f"qkvzba_split: {key_heads} key heads of {key_dim} and {value_heads} value heads of {value_dim} make rows "
            f"of {widths[0]} and {widths[1]}; given are {mixed_qkvz.shape[1]} and {mixed_ba.shape[1]}"
        )
    return _operator(mixed_qkvz, mixed_ba, key_heads, value_heads, key_dim, value_dim)
