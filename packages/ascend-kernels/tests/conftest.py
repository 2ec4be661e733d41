"""Tests of the operators on the CPU: definitions against exact expectations, Triton sources in the interpreter."""

from __future__ import annotations

import os

# Before Triton is imported: its decorator looks once, and no test may need a device.
os.environ["TRITON_INTERPRET"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Warnings of packages that we cannot mend."""
    for warning in (
        # torch.utils.mkldnn of torch 2.13 decorates its own classes with what torch deprecates.
        "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning",
        # triton-ascend looks for CANN's compiler when it is imported; there is none beside the simulation.
        r"ignore:.*No such file or directory. 'ccec':UserWarning",
        # triton-ascend's interpreter reads scalars out of one-element numpy arrays.
        "ignore:Conversion of an array with ndim > 0 to a scalar is deprecated:DeprecationWarning",
    ):
        config.addinivalue_line("filterwarnings", warning)
