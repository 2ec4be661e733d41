"""The table of what is supported says what tests show, no more and no less."""

from pathlib import Path

import pytest

from ascend_integration.support.hooks import COLLECTED
from ascend_integration.support.matrix import DOCUMENT, Row, document, documented, terminal_table

ROWS = [Row("llama", "tokens", "transformers", "a/test_a.py"), Row("bert", "embedding", "transformers", "a/test_b.py")]


def test_the_document_is_current(request: pytest.FixtureRequest):
    """Files that this run did not collect cannot be compared; a run of all tests collects all."""
    collected = request.config.stash[COLLECTED]
    text = Path(request.config.rootpath, DOCUMENT).read_text()
    rows = documented(text)
    shown = {row for rows_of_file in collected.values() for row in rows_of_file}
    missing = [file for file in {row.file for row in rows} if not Path(request.config.rootpath, file).is_file()]
    assert {row for row in rows if row.file in collected} == shown, "run `make support-matrix`"
    assert not missing, "run `make support-matrix`"
    assert text == document(rows), "run `make support-matrix`"


def test_rows_are_read_as_they_are_written():
    assert documented(document([*ROWS, *ROWS])) == set(ROWS)


def test_rows_are_sorted_and_link_to_their_tests():
    lines = document(ROWS).splitlines()[-2:]
    assert lines == [
        "| bert | embedding | transformers | [`a/test_b.py`](../a/test_b.py) |",
        "| llama | tokens | transformers | [`a/test_a.py`](../a/test_a.py) |",
    ]


def test_a_failure_among_passes_shows():
    lines = terminal_table({ROWS[0]: (3, 1), ROWS[1]: (2, 0)})
    assert lines == [
        "family  feature    oracle        result",
        "bert    embedding  transformers  passed (2)",
        "llama   tokens     transformers  FAILED (1 of 4)",
    ]
