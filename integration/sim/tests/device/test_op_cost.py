"""The cost of operator calls, by the benchmark that compares them with the plain CPU."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

_SPEC = importlib.util.spec_from_file_location("op_cost", Path(__file__).parents[2] / "benchmarks" / "op_cost.py")
assert _SPEC is not None
assert _SPEC.loader is not None
op_cost = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(op_cost)

SAMPLE = ["add tiny", "add medium", "add_ tiny", "mul out= tiny", "copy_ tiny", "mm", "index", "cat", "empty", "view"]


@pytest.mark.parametrize("name", SAMPLE)
def test_an_operator_costs_little_more_than_on_the_cpu(name: str, report: Callable[..., None]) -> None:
    """Far less than a dispatch through Python would, which is 50 to 110 µs on an idle machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    npu, cpu = op_cost.compare(dict(op_cost.aten("npu"))[name], dict(op_cost.aten("cpu"))[name], rounds=5, calls=200)
    torch.set_num_threads(threads)
    report(
        "µs per operator call (CPU time)", operator=name, npu=f"{npu:.1f}", cpu=f"{cpu:.1f}", more=f"{npu - cpu:.1f}"
    )
    assert npu - cpu < 40
