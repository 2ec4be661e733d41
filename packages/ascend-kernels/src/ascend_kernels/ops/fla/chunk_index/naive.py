"""The definition in torch."""

from __future__ import annotations

from itertools import pairwise

import torch

from ascend_kernels.ops.fla.chunk_index.plan import most_chunks


def chunk_index_naive(
    cu_seqlens: torch.Tensor, tokens: int, chunk: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.chunk_index`."""
    starts = cu_seqlens.tolist()
    rows = [
        (n, first, min(first + chunk, stop))
        for n, (begin, stop) in enumerate(pairwise(starts))
        for first in range(begin, stop, chunk)
    ]
    counts = torch.tensor([-(-(stop - begin) // chunk) for begin, stop in pairwise(starts)])
    offsets = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(torch.int32)
    rows += [(-1, 0, 0)] * (most_chunks(len(starts) - 1, tokens, chunk) - len(rows))
    table = torch.tensor(rows, dtype=torch.int32, device=cu_seqlens.device).reshape(-1, 3)
    sequence, first, end = (column.contiguous() for column in table.unbind(1))
    return sequence, first, end, offsets.to(cu_seqlens.device)
