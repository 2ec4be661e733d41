"""Counts of the operators judged."""

from collections.abc import Callable, Iterator

import pytest

from .judge import Tally


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest, report: Callable[..., None]) -> Iterator[Tally]:
    """Counts of the module, reported at its end."""
    counts = Tally()
    yield counts
    table = "OpInfo: npu against cpu, " + getattr(request.module, "TITLE", "forward")
    report(table, dtype=request.module.DTYPE, **vars(counts))
