"""Operators of PyTorch's database in place and with `out=`, in float32, on the NPU against the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from . import variants
from .cases import operators, unsupported
from .judge import Tally, judge, name_of

DTYPE = torch.float32
TITLE = "in place and into out="
REFUSED = {"mode": "mode only supports CPU, CUDA and XPU device type"}
"""Operators that take no `out=` on an NPU because torch's own code for it asks for other devices, and what it says."""
FORMS = {"in place": variants.in_place, "into strided": variants.into_strided, "into empty": variants.into_empty}


def cases() -> list[Any]:
    """Every operator with every form it has; those that the forward list names are judged there."""
    return [
        pytest.param(op, form, id=f"{name_of(op)}-{form}")
        for op in (parameter.values[0] for parameter in operators(DTYPE))
        for form, make in FORMS.items()
        if make(op) is not None and name_of(op) not in unsupported(DTYPE)
    ]


@pytest.mark.parametrize(("op", "form"), cases())
def test_writes_what_the_cpu_writes(op: Any, form: str, tally: Tally) -> None:
    outcome = judge(op, DTYPE, FORMS[form](op), samples=1)
    tally.operators += 1
    if name_of(op) in REFUSED:
        assert REFUSED[name_of(op)] in outcome.difference
        tally.unsupported += 1
        return
    assert not outcome.refusal, outcome.refusal
    assert not outcome.difference, outcome.difference
    tally.agree += 1
    tally.samples += outcome.samples
    tally.random += outcome.random
