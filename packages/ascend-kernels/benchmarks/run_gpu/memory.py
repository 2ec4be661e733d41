"""Moves of memory: blocks of paged caches of many layers, runs of bytes, what of a batch is a rank's."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ascend_kernels
from run_gpu.case import Case


def cases() -> Iterator[Case]:
    layers, blocks, copies = 32, 512, 128
    caches = [torch.randn(blocks, 128, 8, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2 * layers)]
    order = torch.randperm(blocks, device="cuda")
    source, target = order[:copies], order[copies : 2 * copies]
    pairs = torch.stack([source, target], 1)
    moved = len(caches) * copies * caches[0][0].nbytes

    def copied() -> torch.Tensor:
        ascend_kernels.kv_block_copy(caches, pairs)
        return torch.stack([caches[0][target], caches[-1][target]])

    def index() -> None:
        for cache in caches:
            cache[target] = cache[source]

    yield Case(
        f"kv_block_copy L{layers} {copies} of 256 KiB",
        copied,
        lambda: torch.stack([caches[0][source], caches[-1][source]]),
        "exact",
        2 * moved,
        {"torch index": index},
        timed=lambda: ascend_kernels.kv_block_copy(caches, pairs),
    )

    def zeroed() -> torch.Tensor:
        ascend_kernels.kv_block_zero(caches, target)
        return torch.stack([caches[0][target], caches[-1][target]])

    def fill() -> None:
        for cache in caches:
            cache.index_fill_(0, target, 0.0)

    yield Case(
        f"kv_block_zero L{layers} {copies} of 256 KiB",
        zeroed,
        lambda: torch.zeros(2, copies, 128, 8, 128, device="cuda"),
        "exact",
        moved,
        {"torch index_fill_": fill},
        timed=lambda: ascend_kernels.kv_block_zero(caches, target),
    )
    sources, targets = list(caches[0].unbind(0)), list(caches[1].unbind(0))
    tables = [torch.tensor([tensor.data_ptr() for tensor in side], device="cuda") for side in (sources, targets)]
    sizes = torch.full_like(tables[0], sources[0].nbytes)

    def memcpy() -> torch.Tensor:
        ascend_kernels.batched_memcpy(*tables, sizes)
        return caches[1]

    yield Case(
        f"batched_memcpy {blocks} of 256 KiB",
        memcpy,
        lambda: caches[0],
        "exact",
        2 * caches[0].nbytes,
        {"torch foreach_copy_": lambda: torch._foreach_copy_(targets, sources)},
        timed=lambda: ascend_kernels.batched_memcpy(*tables, sizes),
    )
    starts = torch.arange(4097, device="cuda", dtype=torch.int32)
    lengths = torch.full((4096,), 900, device="cuda", dtype=torch.int32)

    def metadata(starts: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, ...]:
        cut = starts.clamp(1000, 2000)
        seen = (lengths - (starts[1:] - cut[1:])).clamp(min=0)
        new = starts[1:] - starts[:-1]
        return cut - cut[0], torch.where(cut[1:] > cut[:-1], seen, 0), lengths - new

    compiled = torch.compile(metadata)
    yield Case(
        "context_parallel_metadata 4096",
        lambda: tuple(ascend_kernels.context_parallel_metadata(starts, lengths, 1000, 2000)),
        lambda: metadata(starts, lengths),
        "exact",
        0,
        {"torch.compile": lambda: compiled(starts, lengths)},
    )
