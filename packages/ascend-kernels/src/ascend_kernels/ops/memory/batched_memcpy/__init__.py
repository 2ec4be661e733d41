"""Copies of many runs of bytes in one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.memory.batched_memcpy.calls import calls
from ascend_kernels.ops.memory.batched_memcpy.naive import batched_memcpy_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.memory.batched_memcpy.triton import batched_memcpy_triton

    return batched_memcpy_triton


# What is written lies behind the addresses; they are declared as written so that no compiler takes the call out.
_operator = register(
    "batched_memcpy(Tensor sources, Tensor(a!) targets, Tensor sizes) -> ()",
    naive=batched_memcpy_naive,
    triton=_triton,
    calls=calls,
)


def batched_memcpy(sources: torch.Tensor, targets: torch.Tensor, sizes: torch.Tensor) -> None:
    """Copy ``sizes[i]`` bytes from the address ``sources[i]`` to ``targets[i]``, for every ``i``, in one launch.

    The addresses are of the device that the three tensors are on, and whoever gives them answers for them: nothing can
    check what lies there, or keep it alive until the copy has run. No run of bytes may overlap another that is
    written. For tensors there is :func:`ascend_kernels.batched_copy`.

    Args:
        sources: int64 ``[copies]``; a size of 0 reads none.
        targets: int64 ``[copies]``.
        sizes: int64 ``[copies]``, in bytes, 0 or more, below 2**31 words.

    Raises:
        ValueError: another dtype or shape.
    """
    for name, tensor in (("sources", sources), ("targets", targets), ("sizes", sizes)):
        if tensor.dtype != torch.int64 or tensor.dim() != 1 or tensor.shape != sources.shape:
            raise ValueError(
                f"batched_memcpy: {name} {tensor.dtype} {tuple(tensor.shape)}, sources {tuple(sources.shape)}: int64 "
                "[copies], all three alike, goes"
            )
    if sources.numel():
        _operator(sources, targets, sizes)


def batched_copy(sources: Sequence[torch.Tensor], targets: Sequence[torch.Tensor]) -> None:
    """``targets[i].copy_(sources[i])`` for contiguous tensors of equal dtype and number of elements, in one launch.

    Args:
        sources: contiguous tensors of one device.
        targets: as many, each with as many bytes as its source; written in place.

    Raises:
        ValueError: numbers, sizes, dtypes or devices that differ, or a tensor that is not contiguous.
    """
    if len(sources) != len(targets):
        raise ValueError(f"batched_copy: {len(sources)} sources and {len(targets)} targets; as many of both go")
    for number, (source, target) in enumerate(zip(sources, targets)):
        alike = (source.dtype, source.numel()) == (target.dtype, target.numel())
        if not (alike and source.is_contiguous() and target.is_contiguous()):
            raise ValueError(
                f"batched_copy: pair {number}: {source.dtype} {tuple(source.shape)} with strides {source.stride()} and "
                f"{target.dtype} {tuple(target.shape)} with {target.stride()}: contiguous, of one dtype and size, goes"
            )
        if not source.device == target.device == sources[0].device:
            raise ValueError(
                f"batched_copy: pair {number} is on {source.device} and {target.device}, the first source on "
                f"{sources[0].device}; one device goes"
            )
    if sources:
        rows = torch.tensor(
            [[s.data_ptr() for s in sources], [t.data_ptr() for t in targets], [s.nbytes for s in sources]],
            device=sources[0].device,
        )
        batched_memcpy(*rows)
