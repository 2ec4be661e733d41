"""The definition in torch."""

from __future__ import annotations

import torch


def padded_inputs_naive(
    cu_num_drafts: torch.Tensor, valid_counts: torch.Tensor, query_start_loc: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.padded_inputs`."""
    drafts = torch.diff(cu_num_drafts, prepend=cu_num_drafts.new_zeros(1))
    rejected = torch.where(drafts > 0, drafts + 1 - valid_counts, 0).to(torch.int32)
    return (query_start_loc[1:] - 1 - rejected).to(torch.int32), rejected
