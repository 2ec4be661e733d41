"""The definition in torch."""

from __future__ import annotations

from itertools import pairwise

import torch

from ascend_kernels.ops.attention.tiles.naive import attend, from_pages


def varlen_attention_naive(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seqlens: torch.Tensor,
    key_lens: torch.Tensor,
    block_table: torch.Tensor | None,
    key_scale: torch.Tensor | None,
    value_scale: torch.Tensor | None,
    sinks: torch.Tensor | None,
    scale: float,
    causal: bool,
    window: int,
    soft_cap: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.varlen_attention`."""
    output = query.new_zeros(*query.shape[:2], value.shape[-1])
    lse = query.new_full(query.shape[:2], float("-inf"), dtype=torch.float32)
    lens = key_lens.tolist()
    for n, (begin, end) in enumerate(pairwise(cu_seqlens.tolist())):
        if block_table is None:
            length = lens[n + 1] - lens[n]
            keys, values = (tensor[lens[n] : lens[n + 1]] for tensor in (key, value))
            keys = keys if key_scale is None else keys.float() * key_scale
            values = values if value_scale is None else values.float() * value_scale
        else:
            length = lens[n]
            keys = from_pages(key, block_table[n], length, key_scale)
            values = from_pages(value, block_table[n], length, value_scale)
        at = torch.arange(length, device=query.device)
        own = torch.arange(end - begin, device=query.device)[:, None] + length - (end - begin)
        visible = (at <= own) if causal else (at >= 0).expand(end - begin, -1)
        if window:
            visible = visible & (at > own - window)
        result, total = attend(query[begin:end], keys, values, visible[:, None], sinks, scale, soft_cap)
        output[begin:end], lse[begin:end] = result.to(query.dtype), total
    return output, lse
