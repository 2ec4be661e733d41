"""The definition in torch."""

from __future__ import annotations

import torch

from ascend_kernels.ops.attention.tiles.naive import attend, from_pages


def paged_decode_attention_naive(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    key_scale: torch.Tensor | None,
    value_scale: torch.Tensor | None,
    sinks: torch.Tensor | None,
    scale: float,
    window: int,
    soft_cap: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.paged_decode_attention`."""
    output = query.new_empty(*query.shape[:2], value_cache.shape[-1])
    lse = query.new_empty(query.shape[:2], dtype=torch.float32)
    for row, length in enumerate(seq_lens.tolist()):
        key = from_pages(key_cache, block_table[row], length, key_scale)
        value = from_pages(value_cache, block_table[row], length, value_scale)
        visible = torch.arange(length, device=query.device) >= (length - window if window else 0)
        results = attend(query[row, None], key, value, visible[None, None], sinks, scale, soft_cap)
        output[row], lse[row] = results[0][0].to(query.dtype), results[1][0]
    return output, lse
