"""The hardware reference's torch_npu takes every operator call that the packages make.

It cannot be installed here, because it needs another torch, so its schemas were read out of its wheel
(`tools/vendor_schemas.py`). The tests that make the calls check them against the installed torch_npu; what is left to
show is that the two declare the same arguments. The installed one may have more of those that are passed by name alone,
as long as no call names them.
"""

import ast
import tomllib

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


def operator(node: ast.AST) -> str | None:
    """The vendor's operator that an expression names."""
    if isinstance(node, ast.Attribute) and node.attr.lstrip("_").startswith("npu_"):
        namespace = NAMESPACES.get(ast.unparse(node.value))
        return None if namespace is None else f"{namespace}::{node.attr}"
    return None


def keywords(call: ast.Call) -> tuple[str, set[str]] | None:
    """The vendor's operator that is called, as a packet or one of its overloads, and the arguments named."""
    name = operator(call.func) or (operator(call.func.value) if isinstance(call.func, ast.Attribute) else None)
    return None if name is None else (name, {keyword.arg or "**" for keyword in call.keywords})


def used() -> dict[str, set[str]]:
    """Arguments that the packages' sources name in calls, by operator; `**` stands for any."""
    found: dict[str, set[str]] = {}
    for path in ROOT.glob("packages/*/src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if name := operator(node):
                found.setdefault(name, set())
            if isinstance(node, ast.Call) and (call := keywords(node)):
                found.setdefault(call[0], set()).update(call[1])
    return found


DECLARED = declared()
USED = used()


def arguments(schema: torch.FunctionSchema) -> Arguments:
    return [(it.name, str(it.type), it.kwarg_only, it.default_value) for it in schema.arguments]


def newer(ours: Arguments, theirs: Arguments) -> set[str]:
    """Arguments passed by name that the reference lacks."""
    known = {name for name, *_ in theirs}
    return {name for name, _, by_name, _ in ours if by_name and name not in known}


def test_the_packages_name_operators() -> None:
    assert {"npu::npu_rms_norm", "npu::npu_fused_infer_attention_score_v2", "atb::_npu_reshape_and_cache"} <= set(USED)


@pytest.mark.parametrize("name", sorted(USED))
def test_the_reference_declares_the_same_arguments(name: str) -> None:
    assert name in DECLARED, f"torch_npu {NEWEST['hardware-reference']['torch-npu']} has no operator {name}"
    namespace, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), operator)
    ours = {overload: arguments(getattr(packet, overload)._schema) for overload in packet.overloads()}
    theirs = {overload: arguments(torch._C.parse_schema(text)) for overload, text in DECLARED[name].items()}
    assert ours.keys() == theirs.keys()
    for overload, mine in ours.items():
        unknown = newer(mine, theirs[overload])
        assert [it for it in mine if it[0] not in unknown] == theirs[overload]
        assert not USED[name] & unknown
        assert not unknown or "**" not in USED[name]


def test_named_arguments_are_read_off_calls() -> None:
    assert {"k_group", "norm_type"} <= USED["npu::npu_moe_gating_top_k"]
    installed = arguments(torch.ops.npu.npu_moe_gating_top_k.default._schema)
    reference = arguments(torch._C.parse_schema(DECLARED["npu::npu_moe_gating_top_k"]["default"]))
    assert newer(installed, reference) == {"input_ids", "tid2eid"}
