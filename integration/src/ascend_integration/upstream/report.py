"""The page about vLLM's own tests, from the record of their results."""

from collections import Counter
from typing import Any

from ascend_integration.upstream.record import Outcome, reasons, totals
from ascend_integration.upstream.selection import FOLDER

PAGE = FOLDER / "README.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def _rate(counts: Counter[str]) -> str:
    said = counts[Outcome.PASSED] + counts[Outcome.FAILED]
    return f"{100 * counts[Outcome.PASSED] / said:.1f} %" if said else ""


def _row(name: str, counts: Counter[str]) -> str:
    cells = [str(counts[outcome]) for outcome in Outcome]
    return f"| {name} | {' | '.join(cells)} | {_rate(counts)} |"


def _reason_table(record: dict[str, Any], outcome: Outcome, title: str) -> list[str]:
    rows = [f"| {reason.replace('|', '/')} | {count} |" for reason, count in reasons(record, outcome).items()]
    return [f"| {title} | tests |", "|---|---|", *rows] if rows else ["None."]


def tables(record: dict[str, Any]) -> str:
    """The generated part of the page."""
    counts = {group: totals(files) for group, files in record.items()}
    head = f"| group | {' | '.join(Outcome)} | passed of those that say something |"
    lines = [
        head,
        "|---|" + "---:|" * (len(Outcome) + 1),
        *(_row(group, count) for group, count in sorted(counts.items())),
        _row("**all**", sum(counts.values(), Counter())),
        "",
        "### Failures",
        "",
        *_reason_table(record, Outcome.FAILED, "cause"),
        "",
        "### Not applicable",
        "",
        *_reason_table(record, Outcome.NOT_APPLICABLE, "reason"),
    ]
    return "\n".join(lines)


def page(before: str, record: dict[str, Any]) -> str:
    """The page `before` with the generated part replaced; `ValueError` if it has no place for it."""
    if before.count(BEGIN) != 1 or before.count(END) != 1:
        raise ValueError(f"{PAGE} must have {BEGIN!r} and {END!r} once each; restore them")
    head, rest = before.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n\n{tables(record)}\n\n{END}{tail}"
