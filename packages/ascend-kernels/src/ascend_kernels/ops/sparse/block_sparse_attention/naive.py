"""The definition in torch."""

from __future__ import annotations

import torch

from ascend_kernels.ops.attention.tiles.naive import attend, from_pages


def block_sparse_attention_naive(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    requests: torch.Tensor,
    lengths: torch.Tensor,
    blocks: torch.Tensor,
    block: int,
    key_scale: torch.Tensor | None,
    value_scale: torch.Tensor | None,
    sinks: torch.Tensor | None,
    scale: float,
    soft_cap: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.block_sparse_attention`."""
    output = query.new_empty(*query.shape[:2], value_cache.shape[-1])
    lse = query.new_empty(query.shape[:2], dtype=torch.float32)
    for token, (request, length) in enumerate(zip(requests.tolist(), lengths.tolist())):
        key = from_pages(key_cache, block_table[request], length, key_scale)
        value = from_pages(value_cache, block_table[request], length, value_scale)
        block_of_key = torch.arange(length, device=query.device) // block
        visible = (blocks[token][:, :, None] == block_of_key).any(1)[None]
        result, total = attend(query[token, None], key, value, visible, sinks, scale, soft_cap)
        output[token], lse[token] = result[0].to(query.dtype), total[0]
    return output, lse
