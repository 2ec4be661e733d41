"""Registration of the operators with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.backend import selected_backend

NAMESPACE = "ascend_kernels"
_LIBRARY = torch.library.Library(NAMESPACE, "DEF")


def register(
    schema: str,
    *,
    naive: Callable[..., Any],
    triton: Callable[[], Callable[..., Any]],
    fake: Callable[..., Any],
) -> Callable[..., Any]:
    """Define an operator and return the function that calls it.

    Args:
        schema: name, arguments and results, without the namespace.
        naive: the torch definition; it also serves every device where the Triton kernels are not chosen.
        triton: returns the Triton launcher; called only if Triton is chosen, so that nothing imports it otherwise.
        fake: what the operator returns for fake tensors.
    """
    name = schema.partition("(")[0]
    _LIBRARY.define(schema)
    _LIBRARY.impl(name, naive, "CPU")
    if selected_backend() == "triton":
        launcher = triton()
        for key in ("PrivateUse1", "CUDA"):
            _LIBRARY.impl(name, launcher, key)
    else:
        _LIBRARY.impl(name, naive, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=_LIBRARY)
    return getattr(getattr(torch.ops, NAMESPACE), name).default
