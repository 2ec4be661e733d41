"""Tests of the simulated NPU. They run on the build for the present sources: `python -m ascend_sim build`.

Tests may report rows of tables, which are printed after the run, whichever xdist worker they come from:

>>> def test_something(report):
...     report("Operators by grade", grade="golden", operators=20)
"""

import os
from typing import Any, Protocol

import pytest

os.environ.setdefault("ASCEND_SIM_EVENT_TIMEOUT", "0.2")  # before torch_npu reads it: some tests wait for it

Rows = list[tuple[str, dict[str, str]]]  # table, column to text
ROWS: pytest.StashKey[Rows] = pytest.StashKey()


class Report(Protocol):
    """Adds a row to a table of the summary; rows of equal name form one table, in the order of their first column."""

    def __call__(self, table: str, /, **columns: object) -> None: ...


@pytest.fixture(scope="session")
def report(pytestconfig: pytest.Config) -> Report:
    """Adds a row to a table printed after the run: `report("Table", column=value, …)`."""

    def add(table: str, /, **columns: object) -> None:
        pytestconfig.stash[ROWS].append((table, {name: str(value) for name, value in columns.items()}))

    return add


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)  # xdist's: what a worker sends home
    if output is not None:
        output["rows"] = session.config.stash[ROWS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """xdist: a worker has ended."""
    node.config.stash[ROWS] += getattr(node, "workeroutput", {}).get("rows", [])


def _lines(rows: list[dict[str, str]]) -> list[str]:
    """The rows under the names of their columns, aligned; numbers to the right."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names] + [[row.get(name, "") for name in names] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    numeric = [all(line[i][:1].isdigit() for line in cells[1:] if line[i]) for i in range(len(names))]
    return [
        "  ".join(
            text.rjust(width) if right else text.ljust(width) for text, width, right in zip(line, widths, numeric)
        )
        for line in cells
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tables: dict[str, list[dict[str, str]]] = {}
    for table, row in config.stash[ROWS]:
        tables.setdefault(table, []).append(row)
    for table in sorted(tables):
        terminalreporter.section(table)
        for line in _lines(sorted(tables[table], key=lambda row: next(iter(row.values())))):
            terminalreporter.line(line.rstrip())
