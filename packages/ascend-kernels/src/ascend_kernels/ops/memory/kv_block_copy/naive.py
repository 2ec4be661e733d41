"""The definition in torch."""

from __future__ import annotations

import torch


def kv_block_copy_naive(caches: list[torch.Tensor], pairs: torch.Tensor) -> None:
    """See :func:`ascend_kernels.kv_block_copy`."""
    source, target = pairs[(pairs >= 0).all(1)].unbind(1)
    for cache in caches:
        cache[target] = cache[source]
