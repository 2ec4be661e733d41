"""Which of vLLM's tests are run, in which groups, and what makes one of them say nothing about an NPU."""

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[3] / "upstream"
SELECTION = FOLDER / "selection.toml"


@dataclass(frozen=True)
class Group:
    """Tests that share a process, which spares each file the seconds of imports.

    Attributes:
        name: what the command line calls it.
        paths: files and folders below `tests`.
        seconds: the longest one test may take.
    """

    name: str
    paths: tuple[str, ...]
    seconds: int


@dataclass(frozen=True)
class Adaptation:
    """A place where the tests know the platforms that there are, and where ours is put beside them.

    Attributes:
        why: what it does and why that leaves the tests' meaning.
        files: below `tests`.
        old: the text that is replaced, everywhere in these files.
        new: the text in its place.
    """

    why: str
    files: tuple[str, ...]
    old: str
    new: str


@dataclass(frozen=True)
class Reason:
    """Why tests are not applicable, or why they fail.

    Attributes:
        reason: what the record says.
        tests: patterns of ids, `*` for anything; every test without them.
        error: regular expression found in the error of a test, or in what another process of its engine logged.
        raised_in: whose code must have raised it ("tests": the test itself asked for CUDA); anyone's without.
    """

    reason: str
    tests: tuple[str, ...] = ("*",)
    error: str = ""
    raised_in: str = ""

    def __post_init__(self) -> None:
        if self.tests == ("*",) and not self.error:
            raise ValueError(f"the reason {self.reason!r} would fit every test; give `tests` or `error`")

    def applies_to(self, line: dict[str, Any]) -> bool:
        """Whether the outcome of a test that did not pass has this reason."""
        # Brackets of parameters are no sets of characters here.
        identifier = line["id"].replace("[", "\x00")
        if not any(fnmatchcase(identifier, f"tests/{pattern}".replace("[", "\x00")) for pattern in self.tests):
            return False
        if self.raised_in and not line.get("origin", "").startswith(self.raised_in + " "):
            return False
        said = "\n".join([line.get("error", ""), *line.get("logged", [])])
        return re.search(self.error, said) is not None


@dataclass(frozen=True)
class Selection:
    """The content of `selection.toml`.

    Attributes:
        groups: what is run.
        adaptations: what is changed in the tests.
        needs: what tests need that is not here, so that they say nothing about an NPU; the first that applies counts.
        causes: why a test that does say something fails.
    """

    groups: tuple[Group, ...]
    adaptations: tuple[Adaptation, ...]
    needs: tuple[Reason, ...]
    causes: tuple[Reason, ...]

    def named(self, names: list[str]) -> tuple[Group, ...]:
        """The groups of these names, all without any; `ValueError` names an unknown one and the known."""
        known = {group.name: group for group in self.groups}
        if unknown := sorted(set(names) - known.keys()):
            raise ValueError(f"no group of tests is called {', '.join(unknown)}; there are {', '.join(known)}")
        return tuple(known[name] for name in names) if names else self.groups


def read_selection(path: Path = SELECTION) -> Selection:
    """Read the file; `ValueError` or `TypeError` where it says what is not known."""
    content = tomllib.loads(path.read_text())
    groups = tuple(
        Group(name, tuple(group["paths"]), group.get("seconds", 300)) for name, group in content["groups"].items()
    )
    needs, causes = (
        tuple(Reason(**{**entry, "tests": tuple(entry.get("tests", ("*",)))}) for entry in content.get(kind, ()))
        for kind in ("needs", "causes")
    )
    adaptations = tuple(
        Adaptation(**{**entry, "files": tuple(entry["files"])}) for entry in content.get("adaptations", ())
    )
    return Selection(groups, adaptations, needs, causes)
