# SPDX-License-Identifier: Apache-2.0
"""The page of what the hardware refuses: ``python -m ascend_sim limits``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ascend_sim.references.limits.rows import Kind, Row, Rule
from ascend_sim.references.limits.soc import Family
from ascend_sim.references.limits.table import files, merge

MARKS = ("<!-- generated: python -m ascend_sim limits --page -->", "<!-- end of generated part -->")


def rows() -> list[Row]:
    """The rows of the table, in the order of their files."""
    return list({id(row): row for row in merge(files()).values()}.values())


def _dtypes(row: Row, family: Family | None) -> str:
    found = row.dtypes if family is None else row.dtypes_on[family]
    names = {argument: ", ".join(sorted(str(d).removeprefix("torch.") for d in found[argument])) for argument in found}
    arguments: dict[str, list[str]] = {}
    for argument, allowed in names.items():
        arguments.setdefault(allowed, []).append(f"`{argument}`")
    return "; ".join(f"{', '.join(group)}: {allowed}" for allowed, group in arguments.items())


def _families(families: frozenset[Family]) -> str:
    return ", ".join(sorted(families))


def _rule(row: Row, rule: Rule) -> str:
    words = rule.describe(dict(rule.bounds()))
    when = f" when `{rule.when}`" if rule.when else ""
    soc = f" ({_families(rule.soc)})" if rule.soc and rule.soc != row.soc else ""
    source = f" [{rule.source}]" if rule.source else ""
    captured = ", in a capture" if rule.captured else ""
    return f"- {rule.kind}: `{rule.what}` is {words}{when}{captured}{soc}{source}"


def describe(row: Row) -> str:
    """One row as Markdown."""
    lines = [f"### {', '.join(f'`{op}`' for op in row.ops)}", ""]
    lines.append(f"- SoCs: {_families(row.soc) if row.soc else 'not said'}")
    if not row.capture:
        lines.append("- graphs: cannot be captured")
    if row.dtypes:
        lines.append(f"- dtypes: {_dtypes(row, None)}")
    lines += [f"- dtypes on {family}: {_dtypes(row, family)}" for family in sorted(row.dtypes_on)]
    if row.host:
        lines.append(f"- on the host: {', '.join(f'`{name}`' for name in sorted(row.host))}")
    if row.let:
        lines.append(f"- where {'; '.join(f'`{name}` is `{text}`' for name, text in row.let.items())}")
    lines += [_rule(row, rule) for rule in row.rules]
    if row.numbers:
        lines.append(f"- numbers: {', '.join(f'{name} {value}' for name, value in row.numbers.items())}")
    if row.open:
        lines.append(f"- open: {row.open}")
    lines += [f"- source: {row.source}", ""]
    return "\n".join(lines)


def counts(found: list[Row]) -> dict[Kind, int]:
    """Limits by kind; every dtype list of an argument is one."""
    kinds = Counter(rule.kind for row in found for rule in row.rules)
    kinds[Kind.DTYPE] += sum(len(row.dtypes) + sum(map(len, row.dtypes_on.values())) for row in found)
    return {kind: kinds[kind] for kind in Kind if kinds[kind]}


def markdown(found: list[Row]) -> str:
    """All rows, after a summary of how many there are."""
    operators = sum(len(row.ops) for row in found)
    by_kind = ", ".join(f"{count} {kind}" for kind, count in counts(found).items())
    head = f"{operators} operators in {len(found)} rows; limits by kind: {by_kind}."
    return "\n".join([head, "", *map(describe, found)])


def write(page: Path, found: list[Row]) -> None:
    """Replace the generated part of ``page``, between its two marks.

    Raises:
        ValueError: If the page lacks the marks.
    """
    text = page.read_text(encoding="utf-8")
    start, end = (text.find(mark) for mark in MARKS)
    if start < 0 or end < start:
        raise ValueError(f"{page} lacks the marks {MARKS[0]} and {MARKS[1]}")
    page.write_text(f"{text[:start]}{MARKS[0]}\n{markdown(found)}\n{text[end:]}", encoding="utf-8")


def main(op: str | None = None, page: Path | None = None) -> None:
    """Show what the hardware refuses, for one operator or all.

    Args:
        op: Name of an operator, without namespace and overload.
        page: Write all into this Markdown file instead of printing.

    Raises:
        ValueError: If no row is for ``op``, or the page lacks its marks.
    """
    found = rows()
    if page is not None:
        write(page, found)
        return
    if op is not None:
        found = [row for row in found if op in row.ops]
        if not found:
            raise ValueError(f"no limits are known of {op}; names are as `python -m ascend_sim ops` lists them")
    print("\n".join(map(describe, found)))
