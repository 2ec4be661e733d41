"""The definition in torch."""

from __future__ import annotations

import torch


def expand_requests_naive(
    values: torch.Tensor, cu_counts: torch.Tensor, rows: int, replace: float, replacement: float
) -> torch.Tensor:
    """See :func:`ascend_kernels.expand_requests`."""
    counts = torch.diff(cu_counts, prepend=cu_counts.new_zeros(1)).long()
    replaced = torch.where(values == replace, torch.full_like(values, replacement), values)
    return replaced.repeat_interleave(counts, output_size=rows)
