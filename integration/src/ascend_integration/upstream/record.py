"""What each test of vLLM showed: passed, failed or not applicable, and why."""

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from ascend_integration.upstream.selection import FOLDER, Reason, Selection

RECORD = FOLDER / "record.json"
UNEXPLAINED = "cause not known"
# Folders of the machine that ran the tests, and addresses of objects, are nobody's business and differ every time.
_FOLDERS = re.compile(r"(?<![\w:/])(?:/[\w.@+=-]+)+/(?=[\w.@+=-])")
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")


class Outcome(StrEnum):
    """What a test says about the platform."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Result:
    """One test.

    Attributes:
        test: pytest's id, without the leading `tests/`.
        outcome: what it says.
        reason: why it failed or is not applicable.
        error: what it raised, if it failed.
    """

    test: str
    outcome: Outcome
    reason: str = ""
    error: str = ""

    @property
    def function(self) -> str:
        """The id without parameters."""
        return self.test.split("[", 1)[0]


def _general(text: str) -> str:
    return _ADDRESS.sub("at …", _FOLDERS.sub("…/", text))


def _first(reasons: tuple[Reason, ...], line: dict[str, Any]) -> str | None:
    return next((reason.reason for reason in reasons if reason.applies_to(line)), None)


def result_of(test: str, lines: list[dict[str, Any]], selection: Selection) -> Result:
    """The result of a test with these outcome lines: its first failure, else its skip, else its success."""
    name = test.removeprefix("tests/")
    by_outcome = {line["outcome"]: line for line in reversed(lines)}
    if line := by_outcome.get("failed"):
        if need := _first(selection.needs, line):
            return Result(name, Outcome.NOT_APPLICABLE, need)
        error = line.get("error", "")
        # An engine's process says more of what went wrong than its caller, which knows only that it ended.
        if logged := [text for text in line.get("logged", ()) if text != error]:
            error += f" (logged: {logged[0]})"
        return Result(name, Outcome.FAILED, _first(selection.causes, line) or UNEXPLAINED, _general(error))
    if line := by_outcome.get("skipped"):
        reason = _general(line.get("error", "").removeprefix("Skipped:").strip()) or "no reason given"
        return Result(name, Outcome.NOT_APPLICABLE, _first(selection.needs, line) or f"vLLM leaves it out: {reason}")
    return Result(name, Outcome.PASSED if "passed" in by_outcome else Outcome.NOT_RUN)


def results(lines: list[dict[str, Any]], selection: Selection) -> list[Result]:
    """A result for every test that was collected or has an outcome, in the order of their ids."""
    by_test: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        for test in line.get("collected", ()):
            by_test[test]  # a test without an outcome has no lines
        if "id" in line:
            by_test[line["id"]].append(line)
    return [result_of(test, by_test[test], selection) for test in sorted(by_test)]


def as_record(found: list[Result]) -> dict[str, Any]:
    """The results of a group by file: how many parameters of a function passed or were not applicable, each failure.

    Functions are counted, failures listed by id: the parameters of a function that are in no list have its outcome.
    """
    files: dict[str, Any] = {}
    for result in found:
        path, _, name = result.test.partition("::")
        entry = files.setdefault(path, {})
        function = result.function.partition("::")[2]
        if result.outcome is Outcome.FAILED:
            entry.setdefault(result.outcome, {})[name or path] = {"cause": result.reason, "error": result.error}
            continue
        kinds = entry.setdefault(result.outcome, {})
        if result.outcome is Outcome.NOT_APPLICABLE:
            kinds = kinds.setdefault(result.reason, {})
        kinds[function or path] = kinds.get(function or path, 0) + 1
    return files


def totals(files: dict[str, Any]) -> Counter[str]:
    """How many tests have each outcome in a group's record."""
    counts: Counter[str] = Counter()
    for entry in files.values():
        for outcome, content in entry.items():
            if outcome == Outcome.FAILED:
                counts[outcome] += len(content)
            elif outcome == Outcome.NOT_APPLICABLE:
                counts[outcome] += sum(count for functions in content.values() for count in functions.values())
            else:
                counts[outcome] += sum(content.values())
    return counts


def reasons(record: dict[str, Any], outcome: Outcome) -> Counter[str]:
    """How many tests of the whole record have each reason of an outcome, the most frequent first."""
    counts: Counter[str] = Counter()
    for files in record.values():
        for entry in files.values():
            for key, content in entry.get(outcome, {}).items():
                if outcome is Outcome.FAILED:
                    counts[content["cause"]] += 1
                else:
                    counts[key] += sum(content.values())
    return Counter(dict(counts.most_common()))


def write_record(record: dict[str, Any], path: Path = RECORD) -> None:
    """Write the groups' records, so that a change of one result is a change of one line."""
    path.write_text(json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
