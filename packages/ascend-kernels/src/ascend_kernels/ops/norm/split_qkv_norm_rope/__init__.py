"""Query, key and value of attention out of one projection, normalised and turned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.norm.split_qkv_norm_rope.calls import calls
from ascend_kernels.ops.norm.split_qkv_norm_rope.naive import split_qkv_norm_rope_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.norm.split_qkv_norm_rope.triton import split_qkv_norm_rope_triton

    return split_qkv_norm_rope_triton


def _fake(qkv: torch.Tensor, heads: int, key_heads: int, *others: Any) -> tuple[torch.Tensor, ...]:
    tokens, gated = qkv.shape[0], others[-3]
    size = qkv.shape[1] // (heads * (1 + gated) + 2 * key_heads)
    key = qkv.new_empty(tokens, key_heads, size)
    query = qkv.new_empty(tokens, heads, size)
    return query, key, torch.empty_like(key), torch.empty_like(query) if gated else qkv.new_empty(0)


_operator = register(
    "split_qkv_norm_rope(Tensor qkv, int heads, int key_heads, Tensor q_weight, Tensor k_weight, Tensor? q_bias, "
    "Tensor? k_bias, Tensor? means, Tensor cos, Tensor sin, Tensor? positions, float eps, bool gemma, bool gated, "
    "int[] section, bool section_interleaved) -> (Tensor, Tensor, Tensor, Tensor)",
    naive=split_qkv_norm_rope_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def split_qkv_norm_rope(
    qkv: torch.Tensor,
    heads: int,
    key_heads: int,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None = None,
    *,
    eps: float = 1e-6,
    gemma: bool = False,
    q_bias: torch.Tensor | None = None,
    k_bias: torch.Tensor | None = None,
    gated: bool = False,
    means: torch.Tensor | None = None,
    section: Sequence[int] | None = None,
    section_interleaved: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Split a projection's rows into heads, normalise those of query and key, and turn them.

    A head ``x`` of query or key becomes ``x / sqrt(mean(x²) + eps) * weight + bias``, and then its first ``2 * half``
    elements turn as those of :func:`ascend_kernels.rope` do, halves forming pairs.

    Args:
        qkv: fp16, bf16 or fp32 ``[tokens, (heads * (1 + gated) + 2 * key_heads) * size]``: query, key, value; with
            ``gated`` every head of query is followed by its gate. Rows strided at will.
        heads: of query.
        key_heads: of key, and of value.
        q_weight: ``[size]``, contiguous; with ``means`` ``[heads * size]``.
        k_weight: likewise, of ``key_heads``.
        cos: of every position, or without ``positions`` of every token: ``[rows, half]``.
        sin: likewise.
        positions: ``[tokens]``, or ``[3, tokens]`` with ``section``; int32 or int64, any strides.
        eps: added to the mean of the squares.
        gemma: multiply by ``1 + weight``.
        q_bias: shaped like ``q_weight``, or None; ``k_bias`` is that of key.
        gated: whether query heads have gates.
        means: fp32 ``[tokens, 2]``: mean squares of whole rows of query and of key, over all ranks of a tensor-parallel
            group (:func:`ascend_kernels.qk_square_means`, summed over the group). Heads are then normalised by these.
        section: as of :func:`ascend_kernels.rope`, and ``section_interleaved`` too.

    Returns:
        Contiguous query ``[tokens, heads, size]``, key and value ``[tokens, key_heads, size]``, and the gates, shaped
        like query, or None. Arithmetic is in fp32, rounded once.

    Raises:
        ValueError: shapes that do not belong together; says which.
    """
    parts = heads * (1 + gated) + 2 * key_heads
    if heads < 1 or key_heads < 1 or qkv.dim() != 2 or qkv.shape[1] % parts or qkv.shape[1] == 0:
        raise ValueError(
            f"split_qkv_norm_rope: qkv has shape {tuple(qkv.shape)}; {heads} query heads, {key_heads} key heads and "
            f"gated={gated} need rows of a multiple of {parts} elements, and at least one head of each"
        )
    size = qkv.shape[1] // parts
    _check_tables(qkv, size, cos, sin, positions, section)
    for name, weight, bias, count in (("q", q_weight, q_bias, heads), ("k", k_weight, k_bias, key_heads)):
        expected = (size if means is None else count * size,)
        for kind, tensor in (("weight", weight), ("bias", bias)):
            if tensor is not None and (tensor.shape != expected or not tensor.is_contiguous()):
                raise ValueError(
                    f"split_qkv_norm_rope: {name}_{kind} has shape {tuple(tensor.shape)} and strides "
                    f"{tensor.stride()}; {'heads are' if means is None else 'whole rows are'} normalised, so it must "
                    f"be contiguous {expected}"
                )
    if means is not None and (means.shape != (qkv.shape[0], 2) or means.dtype != torch.float32):
        raise ValueError(
            f"split_qkv_norm_rope: means are {means.dtype} of shape {tuple(means.shape)}; "
            f"fp32 of shape {(qkv.shape[0], 2)} go"
        )
    if qkv.stride(1) != 1:
        qkv = qkv.contiguous()
    query, key, value, gate = _operator(
        qkv, heads, key_heads, q_weight, k_weight, q_bias, k_bias, None if means is None else means.contiguous(), cos,
        sin, positions, eps, gemma, gated, list(section or ()), section_interleaved,
    )  # fmt: skip
    return query, key, value, gate if gated else None


def _check_tables(
    qkv: torch.Tensor,
    size: int,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None,
    section: Sequence[int] | None,
) -> None:
    tokens, half = qkv.shape[0], cos.shape[-1]
    if cos.shape != sin.shape or half == 0 or 2 * half > size or cos.stride(-1) != 1 or sin.stride(-1) != 1:
        raise ValueError(
            f"split_qkv_norm_rope: cos has shape {tuple(cos.shape)} and sin {tuple(sin.shape)}; both must have one "
            f"shape [rows, half], neighbours in the last dimension, and half at most half of a head of {size}"
        )
    rows = cos.shape[-2] if positions is None else positions.shape[-1]
    if rows != tokens:
        what = "rows of cosines" if positions is None else "positions"
        raise ValueError(f"split_qkv_norm_rope: {rows} {what} and {tokens} tokens")
    three = cos.dim() == 3 if positions is None else positions.dim() == 2
    if (section is not None) != three or (section is not None and (len(section) != 3 or sum(section) != half)):
        raise ValueError(
            f"split_qkv_norm_rope: section {section} of {half} pairs: three numbers with that sum, with [3, tokens] "
            "positions (or [3, tokens, half] tables), go together"
        )
