"""The definition in torch."""

from __future__ import annotations

import torch


def context_parallel_metadata_naive(
    query_start_loc: torch.Tensor, seq_lens: torch.Tensor, begin: int, end: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.context_parallel_metadata`."""
    cut = query_start_loc.clamp(begin, end)
    first, last = query_start_loc[:-1], query_start_loc[1:]
    # Tokens of the request behind this rank's last are not seen here.
    visible = (seq_lens - (last - cut[1:])).clamp(min=0)
    here = cut[1:] > cut[:-1]
    results = cut - cut[0], torch.where(here, visible, 0), seq_lens - (last - first)
    return results[0].int(), results[1].int(), results[2].int()
