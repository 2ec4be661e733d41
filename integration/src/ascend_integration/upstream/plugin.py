"""The pytest plugin inside a process that runs vLLM's tests: it writes down how each test ended, as soon as it has.

`UPSTREAM_OUTCOMES` names the file, one JSON object a line: `{"collected": [ids]}`, `{"started": id}` and
`{"id", "outcome", "error", "origin", "output"}`. A process that dies leaves the lines of what ran before.
`UPSTREAM_DONE` names a file of ids that are not to be run again.
"""

import json
import os
import re
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

OUTCOMES, DONE = "UPSTREAM_OUTCOMES", "UPSTREAM_DONE"
# What another process of the engine logged before it died; its caller's exception only says that it did.
_LOGGED_ERROR = re.compile(r"\b((?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|NotFound)\b: .*)")
# Whose code raised: the last frame that belongs to one of these, as torch's own frames say nothing about it.
_OWNERS = ("tests", "vllm", "vllm_ascend", "ascend_kernels", "ascend_moe", "ascend_quant", "ascend_specdecode",
           "ascend_310p", "ascend_sim")  # fmt: skip
LONGEST = 400


def _write(line: dict[str, Any]) -> None:
    with Path(os.environ[OUTCOMES]).open("a") as stream:
        stream.write(json.dumps(line) + "\n")


def owner(path: Path) -> str | None:
    """Which of the packages above holds the file, or None."""
    parts = path.parts
    if "site-packages" in parts:
        first = parts[parts.index("site-packages") + 1]
        return first if first in _OWNERS else None
    return next((name for name in parts if name in _OWNERS), None)


def origin(error: BaseException) -> str:
    """`owner file:function` of the last frame of one of the owners; empty without any."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if found := owner(Path(frame.filename)):
            return f"{found} {Path(frame.filename).name}:{frame.name}"
    return ""


def logged_errors(text: str) -> list[str]:
    """The errors that other processes logged, each once, first to last."""
    return list(dict.fromkeys(match[1].strip()[:LONGEST] for match in _LOGGED_ERROR.finditer(text)))


def _captured(report: pytest.TestReport | pytest.CollectReport) -> str:
    return "\n".join(text for _, text in report.sections)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be imported counts as one test."""
    if report.skipped:
        # pytest gives a skip as file, line and reason.
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _write({"id": report.nodeid, "outcome": "skipped", "error": reason})
    elif report.failed:
        lines = [line[1:].strip() for line in str(report.longrepr).splitlines() if line.startswith("E ")]
        error = " ".join(lines) or str(report.longrepr).strip()
        _write({"id": report.nodeid, "outcome": "failed", "error": error[:LONGEST]})


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has an outcome already."""
    _write({"collected": [item.nodeid for item in items]})
    done = set(Path(os.environ[DONE]).read_text().splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_runtest_logstart(nodeid: str) -> None:
    """Say which test a process was in, should it die."""
    _write({"started": nodeid})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write failures and skips of any phase, and that the last phase succeeded."""
    report = yield
    if report.failed or report.skipped or report.when == "teardown":
        line: dict[str, Any] = {"id": item.nodeid, "outcome": report.outcome, "seconds": round(call.duration, 1)}
        if call.excinfo is not None:
            error = call.excinfo.value
            line["error"] = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST]
            line["origin"] = origin(error)
            line["logged"] = logged_errors(_captured(report))[:4]
        if hasattr(report, "wasxfail"):
            line["error"] = f"expected to fail: {report.wasxfail}"
        _write(line)
    return report
