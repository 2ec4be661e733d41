# SPDX-License-Identifier: Apache-2.0
"""The operators of torch_npu and which of them the simulation can run: ``python -m ascend_sim ops``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

_USE = re.compile(r"\b(?:torch_npu|ops\.npu|ops\.atb|torch_npu\.atb)\.(_?npu_\w+)")
_MARKS = ("<!-- generated: python -m ascend_sim ops --page -->", "<!-- end of generated part -->")


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of namespaces npu and atb.

    Args:
        name: Qualified name with overload.
        schema: As torch_npu registers it.
        meta: Whether torch_npu has a Meta kernel, which torch.compile and fake tensors need.
        reference: Whether the simulation has a kernel.
        source: Where the reference was written from.
        grade: golden, documented or guessed.
        note: What the source leaves open.
    """

    name: str
    schema: str
    meta: bool
    reference: bool
    source: str = ""
    grade: str = ""
    note: str = ""

    @property
    def operator(self) -> str:
        """The name without namespace and overload, as Python code calls it."""
        return self.name.split("::")[1].split(".")[0]


def operators() -> list[Operator]:
    """Every operator of torch_npu, sorted by name."""
    import torch
    import torch_npu  # noqa: F401  registers them

    from ascend_sim.references import registered

    references = registered()
    with_meta = set(torch._C._dispatch_get_registrations_for_dispatch_key("Meta"))
    found = []
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith(("npu::", "atb::")):
            continue
        name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        entry = references.get(name)
        known = {} if entry is None else {"source": entry.source, "grade": str(entry.grade), "note": entry.note}
        found.append(Operator(name, str(schema), name in with_meta, entry is not None, **known))
    return sorted(found, key=lambda op: op.name)


def used_in(folders: Iterable[Path]) -> set[str]:
    """Names of npu and atb operators that Python files below ``folders`` call."""
    names: set[str] = set()
    for folder in folders:
        for path in folder.rglob("*.py"):
            if not {".venv", "node_modules"}.intersection(path.parts):
                names.update(_USE.findall(path.read_text(encoding="utf-8", errors="replace")))
    return names


def markdown(found: list[Operator]) -> str:
    """A table of the operators that have a reference."""
    lines = ["| operator | Meta | grade | source | note |", "|---|---|---|---|---|"]
    for op in found:
        if op.reference:
            meta = "yes" if op.meta else "no"
            lines.append(f"| `{op.name}` | {meta} | {op.grade} | {op.source} | {op.note} |")
    counts = {grade: sum(op.grade == grade for op in found) for grade in ("golden", "documented", "guessed")}
    summary = ", ".join(f"{count} {grade}" for grade, count in counts.items())
    with_reference = sum(op.reference for op in found)
    head = f"{with_reference} of torch_npu's {len(found)} operators have a reference: {summary}."
    return "\n".join([head, "", *lines])


def write(page: Path, found: list[Operator]) -> None:
    """Replace the generated part of ``page``, between its two marks.

    Raises:
        ValueError: If the page lacks the marks.
    """
    text = page.read_text(encoding="utf-8")
    start, end = (text.find(mark) for mark in _MARKS)
    if start < 0 or end < start:
        raise ValueError(f"{page} lacks the marks {_MARKS[0]} and {_MARKS[1]}")
    generated = f"{_MARKS[0]}\n{markdown(found)}\n"
    page.write_text(text[:start] + generated + text[end:], encoding="utf-8")


def _print(found: list[Operator]) -> None:
    from rich.console import Console
    from rich.table import Column, Table

    title = f"{len(found)} operators of torch_npu, {sum(op.reference for op in found)} with a reference"
    name, source = Column("operator", no_wrap=True), Column("source", overflow="fold")
    table = Table(name, "Meta", "reference", "grade", source, title=title)
    for op in found:
        table.add_row(op.name, "yes" if op.meta else "", "yes" if op.reference else "", op.grade, op.source)
    console = Console()
    console.width = max(console.width, 140)
    console.print(table)


def main(
    as_json: bool = False, used_only: bool = False, sources: Iterable[Path] = (Path(),), page: Path | None = None
) -> None:
    """List torch_npu's operators: schema, Meta kernel, reference, its source and grade.

    Args:
        as_json: Print JSON, with schemas and notes, instead of a table.
        used_only: Only operators that Python files below ``sources`` call.
        sources: Folders to look in.
        page: Write the table of references into this Markdown file instead of printing.
    """
    found = operators()
    if page is not None:
        write(page, found)
        return
    if used_only:
        used = used_in(sources)
        found = [op for op in found if op.operator in used]
    if as_json:
        print(json.dumps([asdict(op) for op in found], indent=1))
    else:
        _print(found)
