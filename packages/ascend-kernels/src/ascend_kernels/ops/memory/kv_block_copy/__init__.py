"""Copies of blocks within paged caches, all layers in one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.memory.kv_block_copy.calls import calls
from ascend_kernels.ops.memory.kv_block_copy.naive import kv_block_copy_naive
from ascend_kernels.ops.memory.segments.table import check_caches


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.memory.kv_block_copy.triton import kv_block_copy_triton

    return kv_block_copy_triton


_operator = register(
    "kv_block_copy(Tensor(a!)[] caches, Tensor pairs) -> ()",
    naive=kv_block_copy_naive,
    triton=_triton,
    calls=calls,
)


def kv_block_copy(caches: Sequence[torch.Tensor], pairs: torch.Tensor) -> None:
    """``cache[target] = cache[source]`` for every cache and every pair, in place, in one launch.

    A pair with a -1 does nothing. No block may be the target of two pairs, or the target of one and the source of
    another: the pairs are copied in no order.

    Args:
        caches: ``[blocks, ...]`` of any dtypes and shapes (keys and values of every layer), each block contiguous, all
            on one device. Their addresses are put on the device once per set of caches: the first call with a set
            is no part of a captured graph.
        pairs: int32 or int64 ``[pairs, 2]``: source and target, on the caches' device.

    Raises:
        ValueError: blocks that are not contiguous, caches on several devices, pairs of another shape or dtype.
    """
    check_caches("kv_block_copy", caches)
    if pairs.dim() != 2 or pairs.shape[1] != 2 or pairs.dtype not in (torch.int32, torch.int64):
        raise ValueError(
            f"kv_block_copy: pairs {pairs.dtype} {tuple(pairs.shape)}: int32 or int64 [pairs, 2] (source, target) goes"
        )
    if pairs.numel() and any(cache.numel() for cache in caches):
        _operator(list(caches), pairs)
