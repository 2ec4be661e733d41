"""pytest hooks: tests say what they show with `@pytest.mark.supports(family, feature, oracle)`.

`--support-table` prints the rows of the tests that ran with their results, `--only-supported` runs the tests of such
rows alone, and `--write-support-matrix` writes the document from the marks of what was collected.
"""

from pathlib import Path

import pytest

from ascend_integration.support.matrix import DOCUMENT, Row, document, terminal_table

COLLECTED = pytest.StashKey[dict[str, set[Row]]]()
"""Rows by the file of their tests, of every collected file, those deselected later too."""
_PROPERTY = "supports"


def add_options(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("support", "what is supported")
    group.addoption("--support-table", action="store_true", help="print what the tests that ran show")
    group.addoption("--only-supported", action="store_true", help="run the tests alone that show a row of the table")
    group.addoption("--write-support-matrix", action="store_true", help=f"write {DOCUMENT} from the collected tests")


def configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", "supports(family, feature, oracle): the test shows a row of what is supported")


def _row(mark: pytest.Mark, file: str) -> Row:
    family, feature, oracle = mark.args
    return Row(family, feature, oracle, file)


def note_rows(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the rows of all collected tests, and attach to each test its own for its report."""
    collected = config.stash.setdefault(COLLECTED, {})
    for item in items:
        file = item.path.relative_to(config.rootpath).as_posix()
        # What runs only when asked for is no ground for a claim.
        marks = () if item.get_closest_marker("slow") else item.iter_markers("supports")
        rows = {_row(mark, file) for mark in marks}
        collected.setdefault(file, set()).update(rows)
        # Plain lists: xdist sends them between processes, and takes no subclasses.
        item.user_properties.append((_PROPERTY, [list(row) for row in sorted(rows)]))
    if config.getoption("only_supported"):
        showing = [item for item in items if dict(item.user_properties)[_PROPERTY]]
        config.hook.pytest_deselected(items=[item for item in items if item not in showing])
        items[:] = showing
    if config.getoption("write_support_matrix"):
        path = Path(config.rootpath, DOCUMENT)
        path.parent.mkdir(exist_ok=True)
        path.write_text(document(row for rows in collected.values() for row in rows))


def print_table(reporter: pytest.TerminalReporter) -> None:
    """Print the rows of the tests that ran, if asked to."""
    if not reporter.config.getoption("support_table"):
        return
    results: dict[Row, tuple[int, int]] = {}
    for outcome in ("passed", "failed", "error"):
        for report in reporter.stats.get(outcome, []):
            for row in dict(report.user_properties).get(_PROPERTY, []):
                passed, failed = results.get(Row(*row), (0, 0))
                results[Row(*row)] = (passed + (outcome == "passed"), failed + (outcome != "passed"))
    reporter.section("what is supported")
    reporter.write_line("\n".join(terminal_table(results)))
