"""What the sources import is declared, and what `uv pip check` says is judged rightly."""

import ast
import runpy
import sys
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ascend_integration.packaging import MEMBERS, Member
from ascend_integration.packaging.workspace import ROOT

# Imported where they are there, and required by no metadata: vLLM and torch_npu are peers of the plugin and its
# components, torch comes with ascend-kernels, and an operator takes Triton from its extra.
PEERS = {"vllm", "torch", "torch-npu", "triton", "triton-ascend"}

OWNERS = {module: {canonicalize_name(it) for it in names} for module, names in packages_distributions().items()}

judge = runpy.run_path(str(ROOT / "tools" / "dependencies.py"))["judge"]


def imported(member: Member) -> set[str]:
    """The top-level names that the sources of `member` import, anywhere in a file."""
    found = set()
    for path in member.source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {member.module}


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_every_import_is_declared(member: Member) -> None:
    declared = {canonicalize_name(Requirement(text).name) for text in member.project.get("dependencies", ())}
    peers = PEERS if member.name not in {"ascend-sim", "ascend-integration"} else set()
    ours = {it.module for it in MEMBERS} if member.name == "ascend-integration" else {"vllm_ascend"}
    undeclared = {
        module
        for module in imported(member) - ours
        if not (OWNERS.get(module, {canonicalize_name(module)}) & (declared | peers))
    }
    assert undeclared == set()


PAIR = "The package `xgrammar` requires `triton ; platform_machine == 'x86_64'`, but it's not installed"


def test_the_accepted_complaint_is_accepted() -> None:
    assert judge(f"Checked 9 packages\nFound 1 incompatibility\n{PAIR}\n") == ([("xgrammar", "triton")], [])


@pytest.mark.parametrize(
    "line",
    [
        "The package `xgrammar` requires `triton>=4`, but `3.2.0` is installed",
        "The package `vllm-ascend` requires `ascend-kernels>=0.2`, but `0.1.0` is installed",
        "The package `vllm-ascend` requires `pydantic>=2.12`, but it's not installed",
    ],
)
def test_every_other_complaint_is_rejected(line: str) -> None:
    assert judge(f"{PAIR}\n{line}\n") == ([("xgrammar", "triton")], [line])
