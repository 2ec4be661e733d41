"""Registration of the operators with torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from ascend_kernels.backend import selected_backend
from ascend_kernels.calls import Call, logging_calls

NAMESPACE = "ascend_kernels"
_LIBRARY = torch.library.Library(NAMESPACE, "DEF")


@dataclass(frozen=True, slots=True)
class Operator:
    """A registered operator.

    Attributes:
        name: without the namespace.
        naive: the torch definition.
        triton: returns the Triton launcher; imports Triton.
        calls: the calls worth compiling before serving; see :func:`register`.
    """

    name: str
    naive: Callable[..., Any]
    triton: Callable[[], Callable[..., Any]]
    calls: Callable[[], Iterable[Call]]


OPERATORS: dict[str, Operator] = {}
"""Every operator, by name."""


def returns_nothing(*_: object) -> None:
    """The fake kernel of an operator that writes into its arguments."""


def register(
    schema: str,
    *,
    naive: Callable[..., Any],
    triton: Callable[[], Callable[..., Any]],
    calls: Callable[[], Iterable[Call]],
    fake: Callable[..., Any] = returns_nothing,
) -> Callable[..., Any]:
    """Define an operator and return the function that calls it.

    Args:
        schema: name, arguments and results, without the namespace.
        naive: the torch definition; it also serves every device where the Triton kernels are not chosen.
        triton: returns the Triton launcher; called only if Triton is chosen, so that nothing imports it otherwise.
        calls: the calls worth compiling before serving, tensors on ``meta``: one for each specialisation of a kernel
            that the launch plan can choose, among them those whose global-memory traffic is accounted for.
        fake: what the operator returns for fake tensors.
    """
    name = schema.partition("(")[0]
    _LIBRARY.define(schema)
    _LIBRARY.impl(name, naive, "CPU")
    if selected_backend() == "triton":
        launcher = logging_calls(name, triton())
        for key in ("PrivateUse1", "CUDA"):
            _LIBRARY.impl(name, launcher, key)
    else:
        _LIBRARY.impl(name, logging_calls(name, naive), "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=_LIBRARY)
    OPERATORS[name] = Operator(name, naive, triton, calls)
    return getattr(getattr(torch.ops, NAMESPACE), name).default
