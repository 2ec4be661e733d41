"""The definition in torch."""

from __future__ import annotations

import torch


def rows_of(
    table: torch.Tensor, positions: torch.Tensor | None, section: list[int], section_interleaved: bool
) -> torch.Tensor:
    """Each token's row of a table of cosines or sines, fp32 ``[tokens, half]``."""
    rows = table.float() if positions is None else table.float()[positions]
    if not section:
        return rows
    lane = torch.arange(table.shape[-1], device=table.device)
    if section_interleaved:
        axis = torch.where((lane % 3 == 1) & (lane < 3 * section[1]), 1, 0)
        axis = torch.where((lane % 3 == 2) & (lane < 3 * section[2]), 2, axis)
    else:
        axis = (lane >= section[0]).long() + (lane >= section[0] + section[1])
    return rows.gather(0, axis.expand(1, rows.shape[1], -1))[0]


def rope_naive(
    query: torch.Tensor,
    key: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None,
    interleaved: bool,
    section: list[int],
    section_interleaved: bool,
) -> None:
    """See :func:`ascend_kernels.rope`."""
    cosines = rows_of(cos, positions, section, section_interleaved)[:, None]
    sines = rows_of(sin, positions, section, section_interleaved)[:, None]
    half = cos.shape[-1]
    for heads in (query, key):
        if heads is None:
            continue
        turned = heads[..., : 2 * half]
        first, second = (turned[..., ::2], turned[..., 1::2]) if interleaved else turned.split(half, -1)
        left, right = first.float(), second.float()
        # Both before either is written: in fp32 the two are views of the heads.
        results = left * cosines - right * sines, right * cosines + left * sines
        first.copy_(results[0])
        second.copy_(results[1])
