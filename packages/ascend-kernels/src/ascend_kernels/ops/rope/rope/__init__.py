"""Rotary position embedding, in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.rope.rope.calls import calls
from ascend_kernels.ops.rope.rope.naive import rope_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.rope.rope.triton import rope_triton

    return rope_triton


_operator = register(
    "rope(Tensor(a!) query, Tensor(b!)? key, Tensor cos, Tensor sin, Tensor? positions, bool interleaved, "
    "int[] section, bool section_interleaved) -> ()",
    naive=rope_naive,
    triton=_triton,
    calls=calls,
)


def rope(
    query: torch.Tensor,
    key: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None = None,
    *,
    interleaved: bool = False,
    section: Sequence[int] | None = None,
    section_interleaved: bool = False,
) -> None:
    """Turn pairs of each head's elements by its token's angles (Su et al. 2021, arXiv 2104.09864), in place.

    A pair ``(a, b)`` becomes ``(a cos - b sin, b cos + a sin)``. Pairs are elements ``i`` and ``i + half``, or ``2i``
    and ``2i + 1`` if ``interleaved``, of the first ``2 * half`` elements of a head; the rest stays.

    Args:
        query: fp16, bf16 or fp32 ``[tokens, heads, size]``, rows and heads strided at will, elements not.
        key: ``[tokens, key heads, size]`` of the same dtype, or None.
        cos: ``[rows, half]``: of every position, or without ``positions`` of every token. A cache that holds cosines
            and sines side by side is two slices.
        sin: likewise.
        positions: ``[tokens]``, or ``[3, tokens]`` with ``section``; any strides, int32 or int64.
        interleaved: which elements form a pair.
        section: pairs that turn by the position in time, height and width (Qwen2-VL); they sum to ``half``. Without
            ``positions``, ``cos`` and ``sin`` then are ``[3, tokens, half]``.
        section_interleaved: pairs of the three alternate (Qwen3-VL) instead of lying side by side.

    Raises:
        ValueError: shapes that do not belong together.
    """
    _check(query, key, cos, sin, positions, section)
    _operator(query, key, cos, sin, positions, interleaved, list(section or ()), section_interleaved)


def _check(
    query: torch.Tensor,
    key: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None,
    section: Sequence[int] | None,
) -> None:
    tokens, half = query.shape[0], cos.shape[-1]
    if cos.shape != sin.shape:
        raise ValueError(f"rope: cos has shape {tuple(cos.shape)} and sin {tuple(sin.shape)}")
    if key is not None and (key.shape[0] != tokens or key.dtype != query.dtype):
        raise ValueError(f"rope: {tokens} tokens of {query.dtype} in query, {key.shape[0]} of {key.dtype} in key")
    if positions is None and cos.shape[-2] != tokens:
        raise ValueError(f"rope: {cos.shape[-2]} rows of cosines and {tokens} tokens; pass positions or equal numbers")
    if positions is not None and positions.shape[-1] != tokens:
        raise ValueError(f"rope: {positions.shape[-1]} positions and {tokens} tokens")
    for heads in (query, key):
        if heads is not None and heads.shape[-1] < 2 * half:
            raise ValueError(f"rope: heads of {heads.shape[-1]} elements, tables for {2 * half}")
        if heads is not None and heads.shape[-1] > 1 and heads.stride(-1) != 1:
            raise ValueError(f"rope: the elements of a head must be neighbours; their stride is {heads.stride(-1)}")
    three = (cos.dim() == 3) if positions is None else positions.dim() == 2
    if (section is not None) != three or (section is not None and (len(section) != 3 or sum(section) != half)):
        raise ValueError(
            f"rope: section {section} of {half} pairs: three numbers with that sum, with [3, tokens] positions (or "
            "[3, tokens, half] tables), go together"
        )
