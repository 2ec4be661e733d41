"""Constructs that do not travel between compilers or that NPUs get wrong, looked for in the kernels' sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ascend_kernels

SOURCES = sorted((Path(ascend_kernels.__file__).parent / "ops").rglob("triton.py"))


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Calls of ``tl.<name>`` with their names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("tl."):
            yield ast.unparse(node.func).removeprefix("tl."), node


def violations(source: str) -> list[str]:
    found = []
    tree = ast.parse(source)
    for name, call in calls(tree):
        keywords = {keyword.arg for keyword in call.keywords}
        if name == "load" and "other" in keywords and "mask" not in keywords and len(call.args) < 2:
            found.append(f"line {call.lineno}: tl.load with other and without mask")
        if name == "arange" and not (isinstance(call.args[0], ast.Constant) and call.args[0].value == 0):
            found.append(f"line {call.lineno}: tl.arange that does not start at 0")
        if name in ("inline_asm_elementwise", "pow", "atomic_cas"):
            found.append(f"line {call.lineno}: tl.{name}")
        if keywords & {"care_padding", "overflow_mode", "fp_downcast_rounding"}:
            found.append(f"line {call.lineno}: an argument that triton-ascend alone knows")
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            found.append(f"line {node.lineno}: a power")
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        if not any("jit" in ast.unparse(decorator) for decorator in function.decorator_list):
            continue
        # A store is not ordered before a load of the same address in the same program.
        stored = {ast.unparse(call.args[0]) for name, call in calls(function) if name == "store"}
        reloaded = stored & {ast.unparse(call.args[0]) for name, call in calls(function) if name == "load"}
        last_load = {ast.unparse(call.args[0]): call.lineno for name, call in calls(function) if name == "load"}
        first_store = {
            ast.unparse(call.args[0]): call.lineno for name, call in reversed(list(calls(function))) if name == "store"
        }
        found += [
            f"line {last_load[address]}: loads {address}, which line {first_store[address]} stored"
            for address in reloaded
            if last_load[address] > first_store[address]
        ]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.parent.name)
def test_kernels_use_what_travels(path: Path) -> None:
    assert violations(path.read_text()) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a = tl.load(p, other=0.0)", "other and without mask"),
        ("a = tl.arange(4, 8)", "does not start at 0"),
        ("a = b**2", "a power"),
        ("tl.store(p + i, a)\n    c = tl.load(p + i)", "which line 3 stored"),
    ],
    ids=["other", "arange", "power", "reload"],
)
def test_each_rule_finds_its_construct(line: str, expected: str) -> None:
    [found] = violations(f"@triton.jit\ndef kernel(p, b, i):\n    {line}\n")
    assert expected in found
