"""The definition in torch."""

from __future__ import annotations

import torch


def kv_block_zero_naive(caches: list[torch.Tensor], blocks: torch.Tensor) -> None:
    """See :func:`ascend_kernels.kv_block_zero`."""
    there = blocks[blocks >= 0]
    for cache in caches:
        cache[there] = 0
