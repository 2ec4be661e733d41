"""The hardware reference's torch_npu takes every operator call that the packages make.

It cannot be installed here, because it needs another torch, so its schemas were read out of its wheel
(`tools/vendor_schemas.py`). The tests that make the calls check them against the installed torch_npu; what is left to
show is that the two declare the same arguments.
"""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from ascend_integration.packaging.workspace import ROOT

SETS = ROOT / "integration" / "sets"
NAMESPACES = {"torch.ops.npu": "npu", "torch.ops.atb": "atb", "torch_npu": "npu"}
NEWEST = tomllib.loads(sorted(SETS.glob("vllm-*.toml"))[-1].read_text())
REFERENCE = SETS / f"torch-npu-{NEWEST['hardware-reference']['torch-npu']}.schemas"

Arguments = list[tuple[str, str, bool, object]]


def declared() -> dict[str, dict[str, str]]:
    """Schemas of the reference by operator (`npu::npu_rms_norm`) and overload."""
    found: dict[str, dict[str, str]] = {}
    for line in REFERENCE.read_text().splitlines():
        name, _, overload = line.partition("(")[0].partition(".")
        found.setdefault(name, {})[overload or "default"] = line
    return found


def operators(path: Path) -> Iterator[str]:
    """The vendor's operators that a source file names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr.lstrip("_").startswith("npu_"):
            namespace = NAMESPACES.get(ast.unparse(node.value))
            if namespace is not None:
                yield f"{namespace}::{node.attr}"


DECLARED = declared()
USED = sorted({name for path in ROOT.glob("packages/*/src/**/*.py") for name in operators(path)})


def arguments(schema: torch.FunctionSchema) -> Arguments:
    return [(it.name, str(it.type), it.kwarg_only, it.default_value) for it in schema.arguments]


def test_the_packages_name_operators() -> None:
    assert {"npu::npu_rms_norm", "npu::npu_fused_infer_attention_score_v2", "atb::_npu_reshape_and_cache"} <= set(USED)


@pytest.mark.parametrize("name", USED)
def test_the_reference_declares_the_same_arguments(name: str) -> None:
    assert name in DECLARED, f"torch_npu {NEWEST['hardware-reference']['torch-npu']} has no operator {name}"
    namespace, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), operator)
    ours = {overload: arguments(getattr(packet, overload)._schema) for overload in packet.overloads()}
    theirs = {overload: arguments(torch._C.parse_schema(text)) for overload, text in DECLARED[name].items()}
    assert ours == theirs
