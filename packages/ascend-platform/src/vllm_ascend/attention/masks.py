"""The compressed attention mask of the fused operators."""

from __future__ import annotations

from functools import cache

import torch

COMPRESSED_MASK_SIZE = 2048
"""Side of the mask that sparse modes 2, 3 and 4 expect, whatever the sequence lengths."""


@cache
def compressed_causal_mask(device: torch.device) -> torch.Tensor:
    """Boolean ``[2048, 2048]``, True above the diagonal: the pairs that do not attend."""
    return torch.ones(COMPRESSED_MASK_SIZE, COMPRESSED_MASK_SIZE, dtype=torch.bool, device=device).triu_(1)


@cache
def unused_softmax_lse(device: torch.device) -> torch.Tensor:
    """The one-element buffer an ``.out`` call writes instead of the log-sum-exp nobody asked for."""
    return torch.zeros(1, dtype=torch.float32, device=device)
