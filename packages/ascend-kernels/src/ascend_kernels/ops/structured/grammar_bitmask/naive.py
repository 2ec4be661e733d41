"""The definition in torch."""

from __future__ import annotations

import torch


def grammar_bitmask_naive(logits: torch.Tensor, bitmask: torch.Tensor, rows: torch.Tensor) -> None:
    """See :func:`ascend_kernels.grammar_bitmask`."""
    bits = torch.arange(32, device=logits.device, dtype=torch.int32)
    allowed = ((bitmask[..., None] >> bits) & 1).flatten(-2)[:, : logits.shape[1]].bool()
    for index, row in enumerate(rows.tolist()):
        if row >= 0:
            logits[row].masked_fill_(~allowed[index], float("-inf"))
