"""The definition in torch."""

from __future__ import annotations

import torch


def qkvzba_split_naive(
    mixed_qkvz: torch.Tensor, mixed_ba: torch.Tensor, key_heads: int, value_heads: int, key_dim: int, value_dim: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.qkvzba_split`."""
    group = value_heads // key_heads
    sizes = [key_dim, key_dim, group * value_dim, group * value_dim]
    q, k, v, z = mixed_qkvz.unflatten(1, (key_heads, sum(sizes))).split(sizes, dim=2)
    b, a = mixed_ba.unflatten(1, (key_heads, 2 * group)).split(group, dim=2)
    qkv = torch.cat([q.flatten(1), k.flatten(1), v.flatten(1)], dim=1)
    z = z.reshape(-1, value_heads, value_dim)
    return qkv, z.contiguous(), b.reshape(-1, value_heads).contiguous(), a.reshape(-1, value_heads).contiguous()
