"""Read the install lines of the README files, so that a test runs exactly what a reader would type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ascend_integration.packaging.workspace import ROOT

FENCE = re.compile(r"^```(?:bash|sh|shell|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INSTALL = re.compile(r"\bpip install\b")


@dataclass(frozen=True)
class InstallBlock:
    """One fenced block of a README with install lines.

    Attributes:
        readme: path of the file, relative to the root of the repository.
        number: position among the file's install blocks, from 1.
        lines: the install lines, as written; other lines of the block are left out.
    """

    readme: Path
    number: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        tool = "uv" if all("uv pip" in line for line in self.lines) else "pip"
        return f"{self.readme}-{self.number}-{tool}"


def install_blocks(readme: Path) -> list[InstallBlock]:
    """Return the blocks of `readme` that have install lines, in order; a line ends at a newline not escaped."""
    blocks: list[InstallBlock] = []
    for text in FENCE.findall(readme.read_text()):
        commands = text.replace("\\\n", " ").splitlines()
        if lines := tuple(line.strip() for line in commands if INSTALL.search(line)):
            blocks.append(InstallBlock(readme.relative_to(ROOT), len(blocks) + 1, lines))
    return blocks
