"""Tensors that show reads outside a tile and elements that were never written."""

from __future__ import annotations

import torch

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
AWKWARD_ROWS = (0, 1, 3, 65)
"""Counts of rows: none, one, no multiple of a tile."""
AWKWARD_SIZES = (1, 2, 3, 8, 33, 100, 129)
"""Lengths of rows: shorter than a vector instruction, no power of two, one more than one."""


def _filler(dtype: torch.dtype) -> float | int:
    return float("nan") if dtype.is_floating_point else torch.iinfo(dtype).min


def guarded(values: torch.Tensor, padding: int = 5) -> torch.Tensor:
    """The same values as a view with strided rows: around every row lies NaN (the least integer), so that a read
    outside the rows shows in the result.

    The last dimension stays contiguous; ``padding`` elements lie before and behind each row.
    """
    *outer, last = values.shape
    buffer = torch.full((*outer, last + 2 * padding), _filler(values.dtype), dtype=values.dtype, device=values.device)
    view = buffer[..., padding : padding + last]
    view.copy_(values)
    return view


def poisoned(*shape: int, dtype: torch.dtype, device: str = "cpu") -> torch.Tensor:
    """A tensor to write to, filled with NaN (the least integer): what a kernel forgets to write shows."""
    return torch.full(shape, _filler(dtype), dtype=dtype, device=device)
