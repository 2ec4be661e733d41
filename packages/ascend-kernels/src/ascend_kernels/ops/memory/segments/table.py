"""Tables of addresses, kept on the device between calls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch

WORD = 8
"""Bytes that a kernel moves as one element, where all addresses and sizes are multiples of it."""


def check_caches(operator: str, caches: Sequence[torch.Tensor]) -> None:
    """Raises ValueError unless every cache is ``[blocks, ...]`` with contiguous blocks, all on one device."""
    for number, cache in enumerate(caches):
        if cache.dim() < 2 or not cache[:1].is_contiguous():
            raise ValueError(
                f"{operator}: cache {number} is {tuple(cache.shape)} with strides {cache.stride()}: [blocks, ...] with "
                "contiguous blocks goes; of a cache that holds keys and values in its first dimension, give both parts"
            )
        if cache.device != caches[0].device:
            raise ValueError(f"{operator}: cache {number} is on {cache.device} and cache 0 on {caches[0].device}")


def cache_table(caches: Sequence[torch.Tensor], device: torch.device) -> tuple[torch.Tensor, int, int]:
    """Where the blocks of caches lie.

    Returns:
        int64 ``[caches, 3]`` on ``device`` (address of block 0, bytes from block to block, bytes of a block), the
        most bytes of a block, and the bytes of an element to move: :data:`WORD`, or 1 where not all is a multiple.
    """
    rows = tuple(
        (cache.data_ptr(), cache.stride(0) * cache.itemsize, cache[0].numel() * cache.itemsize) for cache in caches
    )
    aligned = all(value % WORD == 0 for row in rows for value in row)
    return _on_device(rows, device), max(row[2] for row in rows), WORD if aligned else 1


@lru_cache(maxsize=64)
def _on_device(rows: tuple[tuple[int, int, int], ...], device: torch.device) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.int64, device=device)
