"""The members of the workspace, read from their pyproject files."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
"""The root of the repository; these checks run from a checkout only."""


@dataclass(frozen=True)
class Member:
    """One distribution of the workspace.

    Attributes:
        folder: where its ``pyproject.toml`` is.
    """

    folder: Path

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        """The parsed ``pyproject.toml``."""
        return tomllib.loads((self.folder / "pyproject.toml").read_text())

    @property
    def project(self) -> dict[str, Any]:
        """The table ``[project]``."""
        table: dict[str, Any] = self.pyproject["project"]
        return table

    @property
    def name(self) -> str:
        """The name of the distribution."""
        return str(self.project["name"])

    @property
    def version(self) -> str:
        """The static version."""
        return str(self.project["version"])

    @property
    def module(self) -> str:
        """The import package, as the wheel target names it."""
        (package,) = self.pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        return Path(package).name

    @property
    def source(self) -> Path:
        """The folder of the import package."""
        return self.folder / "src" / self.module


def _members() -> tuple[Member, ...]:
    root = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = root["tool"]["uv"]["workspace"]["members"]
    found = (path.parent for pattern in patterns for path in ROOT.glob(f"{pattern}/pyproject.toml"))
    return tuple(sorted(map(Member, found), key=lambda member: member.name))


MEMBERS = _members()
"""Every member, by name."""

PUBLISHED = tuple(
    member for member in MEMBERS if "Private :: Do Not Upload" not in member.project.get("classifiers", ())
)
"""The members that are released: all but the integration package."""
