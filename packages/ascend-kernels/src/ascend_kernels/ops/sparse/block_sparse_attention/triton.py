"""The Triton kernel is that of paged decoding, with a list of blocks in place of all keys."""

from __future__ import annotations

import torch

from ascend_kernels.ops.attention.paged_decode_attention.triton import launch_paged_rows


def block_sparse_attention_triton(
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
    return launch_paged_rows(
        query, key_cache, value_cache, block_table, lengths, requests, blocks, block, key_scale, value_scale, sinks,
        scale, 0, soft_cap,
    )  # fmt: skip
