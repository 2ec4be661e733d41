"""Zeros in blocks of paged caches, all layers in one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.memory.kv_block_zero.calls import calls
from ascend_kernels.ops.memory.kv_block_zero.naive import kv_block_zero_naive
from ascend_kernels.ops.memory.segments.table import check_caches


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.memory.kv_block_zero.triton import kv_block_zero_triton

    return kv_block_zero_triton


_operator = register(
    "kv_block_zero(Tensor(a!)[] caches, Tensor blocks) -> ()",
    naive=kv_block_zero_naive,
    triton=_triton,
    calls=calls,
)


def kv_block_zero(caches: Sequence[torch.Tensor], blocks: torch.Tensor) -> None:
    """``cache[block] = 0`` for every cache and every block, in place, in one launch; a block -1 is left out.

    Args:
        caches: as :func:`ascend_kernels.kv_block_copy` takes them.
        blocks: int32 or int64 ``[blocks]``, on the caches' device.

    Raises:
        ValueError: blocks that are not contiguous, caches on several devices, numbers of another shape or dtype.
    """
    check_caches("kv_block_zero", caches)
    if blocks.dim() != 1 or blocks.dtype not in (torch.int32, torch.int64):
        raise ValueError(
            f"kv_block_zero: blocks {blocks.dtype} {tuple(blocks.shape)}: int32 or int64 of one dimension goes"
        )
    if blocks.numel() and any(cache.numel() for cache in caches):
        _operator(list(caches), blocks)
