"""Triton kernel: some requests at a time, each by itself: a rank's starts are the batch's, cut and shifted."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import MAX_PROGRAMS, ceil_div, launch

BLOCK = 1024


@triton.jit(do_not_specialize=["requests", "begin", "end", "tiles"])
def context_parallel_metadata_kernel(
    query_start_loc, seq_lens, local_starts, local_lens, positions, requests, begin, end, tiles, BLOCK: tl.constexpr
):
    origin = tl.minimum(tl.maximum(tl.load(query_start_loc).to(tl.int32), begin), end)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        request = tile * BLOCK + tl.arange(0, BLOCK)
        inside = request < requests
        first = tl.load(query_start_loc + request, mask=inside, other=0).to(tl.int32)
        last = tl.load(query_start_loc + request + 1, mask=inside, other=0).to(tl.int32)
        length = tl.load(seq_lens + request, mask=inside, other=0).to(tl.int32)
        cut_first = tl.minimum(tl.maximum(first, begin), end)
        cut_last = tl.minimum(tl.maximum(last, begin), end)
        visible = tl.maximum(length - (last - cut_last), 0)
        tl.store(local_starts + request + 1, cut_last - origin, mask=inside)
        tl.store(local_lens + request, tl.where(cut_last > cut_first, visible, 0), mask=inside)
        tl.store(positions + request, length - (last - first), mask=inside)
    if tl.program_id(0) == 0:
        tl.store(local_starts, 0)


def context_parallel_metadata_triton(
    query_start_loc: torch.Tensor, seq_lens: torch.Tensor, begin: int, end: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.context_parallel_metadata`."""
    requests = seq_lens.shape[0]
    starts = torch.empty(requests + 1, dtype=torch.int32, device=seq_lens.device)
    lengths, positions = (torch.empty(requests, dtype=torch.int32, device=seq_lens.device) for _ in range(2))
    tiles = max(1, ceil_div(requests, BLOCK))
    launch(
        context_parallel_metadata_kernel,
        (min(tiles, MAX_PROGRAMS),),
        query_start_loc.contiguous(),
        seq_lens.contiguous(),
        starts,
        lengths,
        positions,
        requests,
        begin,
        end,
        tiles,
        BLOCK=BLOCK,
    )
    return starts, lengths, positions
