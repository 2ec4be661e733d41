"""The definition in torch."""

from __future__ import annotations

import torch


def decode_inputs_naive(
    staged: torch.Tensor,
    previous_tokens: torch.Tensor | None,
    block_table: torch.Tensor,
    block_size: int,
    input_ids: torch.Tensor,
    positions: torch.Tensor,
    seq_lens: torch.Tensor,
    slots: torch.Tensor,
    pad: int,
) -> None:
    """See :func:`ascend_kernels.decode_inputs`."""
    rows = staged.shape[1]
    if rows == 0:
        return
    position, source, token = staged.unbind(0)
    real = position >= 0
    if previous_tokens is not None:
        first = previous_tokens.reshape(previous_tokens.shape[0], -1)[:, 0]
        token = torch.where(source >= 0, first[source.clamp(min=0)], token)
    position = position.clamp(min=0)
    pages = block_table[torch.arange(rows, device=staged.device), position // block_size].to(torch.int64)
    input_ids[:rows] = torch.where(real, token, 0).to(input_ids.dtype)
    positions[:rows] = position
    seq_lens[:rows] = torch.where(real, position + 1, 0).to(seq_lens.dtype)
    slots[:rows] = torch.where(real, pages * block_size + position % block_size, pad).to(slots.dtype)
