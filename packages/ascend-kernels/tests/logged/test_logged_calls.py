"""L1 on calls as a log has them: each in ``calls.jsonl`` runs in the interpreter and agrees with the definition.

The file has the form of a call log (``ASCEND_KERNELS_CALL_LOG``), with the shapes of a small Llama that serves 1, 8 and
19 tokens; the log of a process can take its place. Floats are drawn at random, integers are zeros, which every operator
accepts as positions, pages and counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from ascend_kernels.calls import Call, read_call_log
from ascend_kernels.library import OPERATORS
from ascend_kernels.testing import TRITON_PLANS, assert_close, run

CALLS = read_call_log(Path(__file__).with_name("calls.jsonl"))


def filled(value: Any, generator: torch.Generator) -> Any:
    """A tensor with values where the log has a shape."""
    if not isinstance(value, torch.Tensor):
        return value
    tensor = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    return tensor.copy_(torch.randn(value.shape, generator=generator)) if tensor.is_floating_point() else tensor.zero_()


def tensors(arguments: tuple[Any, ...], result: Any) -> list[torch.Tensor]:
    """What a call may have written: its arguments and its results."""
    results = [result] if isinstance(result, torch.Tensor) else list(result or ())
    return [value for value in (*arguments, *results) if isinstance(value, torch.Tensor)]


@pytest.mark.parametrize("plan", TRITON_PLANS)
@pytest.mark.parametrize(("operator", "call"), CALLS, ids=[f"{name}-{call.label}" for name, call in CALLS])
def test_kernel_and_definition_agree(operator: str, call: Call, plan: str) -> None:
    outcomes = []
    for implementation in ("naive", plan):
        arguments = tuple(filled(value, torch.Generator().manual_seed(0)) for value in call.arguments)
        outcomes.append(tensors(arguments, run(operator, implementation, *arguments)))
    assert len(outcomes[0]) == len(outcomes[1])
    for expected, actual in zip(*outcomes):
        if actual.dtype == torch.int8:  # one step of the quantisation, where a value lies between two
            assert (actual.int() - expected.int()).abs().max() <= 1
        else:
            assert_close(actual, expected, "reduction")


def test_the_log_names_operators_that_exist() -> None:
    assert CALLS
    assert {operator for operator, _ in CALLS} <= set(OPERATORS)
