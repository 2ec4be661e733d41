"""The two products of a low-rank adapter, each row with its own adapter or none.

``y[t] += scale * B[i] @ (A[i] @ x[t])`` with ``i = indices[t]``; an index below zero is no adapter. Every adapter that
fits on the device takes part in the products and a mask leaves out the rows that are not its own, so that shapes depend
on no value: the same calls serve prefill and decode, and a graph may hold them.
"""

from __future__ import annotations

import torch


def chosen(indices: torch.Tensor, adapters: int) -> torch.Tensor:
    """Boolean ``[adapters, rows, 1]``: which adapter is whose, from ``indices`` ``[rows]``."""
    slots = torch.arange(adapters, device=indices.device)
    return (slots[:, None] == indices[None, :])[..., None]


def shrink(y: torch.Tensor, x: torch.Tensor, a: torch.Tensor, mask: torch.Tensor, scale: float) -> None:
    """``y[t] += scale * A[i] @ x[t]``.

    Args:
        y: ``[rows, rank]``, written in place.
        x: ``[rows, inputs]``.
        a: ``[adapters, 1, rank, inputs]``.
        mask: see :func:`chosen`.
    """
    adapters, _, rank, inputs = a.shape
    all_adapters = torch.mm(x.to(a.dtype), a.view(adapters * rank, inputs).t()).view(-1, adapters, rank).transpose(0, 1)
    y.add_(all_adapters.masked_fill(~mask, 0).sum(0), alpha=scale)


def expand(y: torch.Tensor, x: torch.Tensor, b: torch.Tensor, mask: torch.Tensor) -> None:
    """``y[t] += B[i] @ x[t]``.

    Args:
        y: ``[rows, outputs]``, written in place; a slice of wider rows is fine.
        x: ``[rows, rank]``.
        b: ``[adapters, 1, outputs, rank]``.
        mask: see :func:`chosen`.
    """
    x = x.to(b.dtype)
    for adapter in range(b.shape[0]):
        # The product is masked, not its factor: what is not finite in one adapter stays there.
        y.add_(torch.mm(x, b[adapter, 0].t()).masked_fill_(~mask[adapter], 0))
