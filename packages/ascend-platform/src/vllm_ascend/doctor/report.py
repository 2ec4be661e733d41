"""What the doctor found."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum


class Status(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing has to be done."""
    PROBLEM = "problem"
    """vLLM will not work on the NPU, or not as it should, until this is mended."""


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        subject: what was looked at.
        status: how bad it is.
        value: what was found.
        detail: why that matters.
        mend: what to do; every problem has one.
    """

    subject: str
    status: Status
    value: str
    detail: str = ""
    mend: str = ""


@dataclass(frozen=True)
class Report:
    """All findings, in the order in which they are shown."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return all(it.status is not Status.PROBLEM for it in self.findings)

    def to_json(self) -> str:
        """``{"ok": bool, "findings": [{"subject", "status", "value", "detail", "mend"}]}``, indented."""
        return json.dumps({"ok": self.ok, "findings": [asdict(it) for it in self.findings]}, indent=2)
