"""Which implementation the operators run on a device.

``ASCEND_KERNELS_BACKEND`` is read once, when the package is imported:

- ``triton``: the Triton kernels; an error if no Triton is installed.
- ``naive``: the torch definitions, on whatever device the tensors are.
- ``auto`` (default): ``triton`` if a Triton with an active driver is there, else ``naive``.

On the CPU the torch definition always runs.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from typing import Literal, cast, get_args

Backend = Literal["auto", "triton", "naive"]
VARIABLE = "ASCEND_KERNELS_BACKEND"


@cache
def selected_backend() -> Literal["triton", "naive"]:
    """The backend in force in this process.

    Raises:
        ValueError: the variable holds an unknown word.
        ModuleNotFoundError: ``triton`` was asked for and is not installed.
    """
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in get_args(Backend):
        raise ValueError(f"{VARIABLE}={wanted!r}: one of {', '.join(get_args(Backend))} is allowed")
    backend = cast(Backend, wanted)
    if backend == "auto":
        return "triton" if _triton_has_driver() else "naive"
    if backend == "triton" and find_spec("triton") is None:
        raise ModuleNotFoundError(
            f"{VARIABLE}=triton, but no Triton is installed: install ascend-kernels[npu] (triton-ascend) or "
            "ascend-kernels[gpu] (triton), or choose naive"
        )
    return backend


def _triton_has_driver() -> bool:
    """Whether Triton is installed and has exactly one backend that finds its device."""
    if find_spec("triton") is None:
        return False
    from triton.backends import backends

    return sum(1 for entry in backends.values() if entry.driver is not None and entry.driver.is_active()) == 1
