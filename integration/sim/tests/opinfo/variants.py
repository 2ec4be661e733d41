"""The forms of an operator that write into tensors they are given: in place, and into `out=`.

Both devices get the same call. What it returns is compared, and so is the tensor that it had to write. A call that the
CPU refuses (an in-place result that would need another dtype or shape, say) must be refused by the NPU as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

Call = Callable[..., Any]


@dataclass(frozen=True)
class Refusal:
    """An error instead of a result."""

    type: type[Exception]
    text: str = field(compare=False)


def _or_refusal(call: Call) -> Call:
    """The same call; a refusal becomes the result. Two of them are equal if their types are."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except (RuntimeError, TypeError, NotImplementedError, ValueError) as error:
            return Refusal(type(error), str(error))

    return wrapped


def in_place(op: Any) -> Call | None:
    """The operator's in-place form, which returns its result and its first argument; None if it has none."""
    if op.inplace_variant is None:
        return None

    def call(first: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return op.inplace_variant(first, *args, **kwargs), first

    return _or_refusal(call)


def _spread(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the same shape with other strides, and 7 in every element."""
    wide = torch.full((*tensor.shape, 2), 7, dtype=tensor.dtype, device=tensor.device)
    return wide[..., 0]


def _empty(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor without elements, which the operator has to resize."""
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device)


def _into(op: Any, make: Callable[[torch.Tensor], torch.Tensor]) -> Call:
    def call(*args: Any, **kwargs: Any) -> Any:
        out = pytree.tree_map_only(torch.Tensor, make, op(*args, **kwargs))
        out = tuple(out) if isinstance(out, tuple) else out  # the named tuples of results are no tuples to the parser
        return op(*args, **kwargs, out=out), out

    return _or_refusal(call)


def into_strided(op: Any) -> Call | None:
    """The operator with `out=` tensors that are not contiguous; None if it takes none."""
    return _into(op, _spread) if op.supports_out else None


def into_empty(op: Any) -> Call | None:
    """The operator with `out=` tensors that it must resize; None if it takes none."""
    return _into(op, _empty) if op.supports_out else None
