"""The definition in torch."""

from __future__ import annotations

import torch

from ascend_kernels.ops.rope.rope.naive import rope_naive


def _normalised(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    mean: torch.Tensor | None,
    eps: float,
    offset: float,
) -> torch.Tensor:
    """fp32 heads ``[tokens, heads, size]``, each normalised by its own mean square or by the row's."""
    values = x.float()
    squares = values.square().mean(-1, keepdim=True) if mean is None else mean[:, None, None]
    shape = x.shape[-1:] if mean is None else x.shape[1:]
    values = values * torch.rsqrt(squares + eps) * (weight.float() + offset).view(shape)
    return values if bias is None else values + bias.float().view(shape)


def split_qkv_norm_rope_naive(
    qkv: torch.Tensor,
    heads: int,
    key_heads: int,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    q_bias: torch.Tensor | None,
    k_bias: torch.Tensor | None,
    means: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None,
    eps: float,
    gemma: bool,
    gated: bool,
    section: list[int],
    section_interleaved: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.split_qkv_norm_rope`."""
    parts = 1 + gated
    size = qkv.shape[1] // (heads * parts + 2 * key_heads)
    query, key, value = qkv.split([heads * parts * size, key_heads * size, key_heads * size], dim=-1)
    query, *gate = query.unflatten(-1, (heads, parts * size)).split(size, dim=-1)
    q_mean, k_mean = (None, None) if means is None else means.unbind(-1)
    q = _normalised(query, q_weight, q_bias, q_mean, eps, float(gemma))
    k = _normalised(key.unflatten(-1, (key_heads, size)), k_weight, k_bias, k_mean, eps, float(gemma))
    rope_naive(q, k, cos, sin, positions, False, section, section_interleaved)
    left = gate[0] if gated else qkv.new_empty(0)
    return (
        q.to(qkv.dtype),
        k.to(qkv.dtype),
        value.unflatten(-1, (key_heads, size)).clone(memory_format=torch.contiguous_format),
        left.clone(memory_format=torch.contiguous_format),
    )
