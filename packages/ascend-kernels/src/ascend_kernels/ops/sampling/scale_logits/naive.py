"""The definition in torch."""

from __future__ import annotations

import torch


def of_rows(values: torch.Tensor, request_of_row: torch.Tensor | None, rows: int) -> torch.Tensor:
    """Values of requests as values of rows; without a map row ``i`` is request ``i``."""
    return values[:rows] if request_of_row is None else values[request_of_row]


def scaled(logits: torch.Tensor, temperature: torch.Tensor, min_p: torch.Tensor | None) -> torch.Tensor:
    """``logits / temperature`` in fp32, tokens below ``min_p`` of the most probable one at -inf; vectors per row."""
    values = logits.float() / torch.where(temperature == 0, 1.0, temperature)[:, None]
    if min_p is None:
        return values
    floor = values.amax(-1, keepdim=True) + min_p.log()[:, None]
    return values.masked_fill(values < floor, float("-inf"))


def scale_logits_naive(
    logits: torch.Tensor, temperature: torch.Tensor, min_p: torch.Tensor | None, request_of_row: torch.Tensor | None
) -> None:
    """See :func:`ascend_kernels.scale_logits`."""
    rows = logits.shape[0]
    bound = None if min_p is None else of_rows(min_p, request_of_row, rows)
    logits.copy_(scaled(logits, of_rows(temperature, request_of_row, rows), bound))
