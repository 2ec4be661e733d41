"""Running a named implementation of an operator: the definition, or the Triton kernel with a target's plan."""

from __future__ import annotations

import importlib.util
from typing import Any

import torch

from ascend_kernels.library import NAMESPACE, OPERATORS
from ascend_kernels.target import ASCEND_910B1, Target, cuda_target, use_target

TRITON_PLANS: dict[str, Target] = (
    {"ascend": ASCEND_910B1, "cuda": cuda_target(multiprocessors=132)} if importlib.util.find_spec("triton") else {}
)
"""The launch plans that a Triton kernel can be run with, by name; none without Triton."""

IMPLEMENTATIONS = ("naive", *TRITON_PLANS)
"""Names of the implementations, for parametrised tests."""


def run(operator: str, implementation: str, *arguments: Any) -> Any:
    """Call one implementation of an operator with the arguments of its schema, whatever device they are on."""
    entry = OPERATORS[operator]
    if implementation == "naive":
        return entry.naive(*arguments)
    with use_target(TRITON_PLANS[implementation]):
        return entry.triton()(*arguments)


def opcheck(operator: str, *arguments: Any) -> None:
    """torch's own checks of a registered operator: schema, aliasing, fake kernel, use under ``torch.compile``."""
    torch.library.opcheck(getattr(getattr(torch.ops, NAMESPACE), operator).default, arguments)
