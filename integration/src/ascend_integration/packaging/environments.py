"""Fresh virtual environments that hold chosen third-party distributions and none of ours.

Downloading torch and vLLM for every test would take minutes and need the registry. An environment here is a real
one, made by the venv module with its own pip; what is third-party in it is hard-linked from the running environment,
file by file as the RECORD of each distribution lists them. Ours come from wheel files, through pip or uv.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ascend_integration.packaging.workspace import MEMBERS

OURS = frozenset(member.name for member in MEMBERS)


def closure(names: Iterable[str]) -> set[str]:
    """Return `names` and, of what they require without extras, everything that is installed here and not ours."""
    wanted: set[str] = set()
    queue: list[str] = [canonicalize_name(name) for name in names]
    present = third_party()
    while queue:
        name = queue.pop()
        if name in wanted or name not in present:
            continue
        wanted.add(name)
        requirements = map(Requirement, distribution(name).requires or ())
        queue += [
            canonicalize_name(it.name) for it in requirements if not it.marker or it.marker.evaluate({"extra": ""})
        ]
    return wanted


def third_party() -> set[str]:
    """Return every distribution that is installed here and not ours."""
    return {str(canonicalize_name(found.name)) for found in distributions()} - OURS


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except OSError:  # another file system
        shutil.copy2(source, target)


@dataclass(frozen=True)
class Environment:
    """A virtual environment in `folder`."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, seed: Collection[str] = (), *, pip: bool = True) -> Environment:
        """Make one with pip and the third-party distributions `seed`.

        Raises:
            PackageNotFoundError: a distribution of `seed` is not installed here.
        """
        command = [sys.executable, "-m", "venv", *(() if pip else ("--without-pip",)), folder]
        subprocess.run(command, check=True)
        made = cls(folder)
        if pip and "setuptools" in seed:  # the venv module brings an old one along
            made.run(made.python, "-m", "pip", "uninstall", "--yes", "setuptools")
        for name in sorted(set(seed) - {"pip"}):
            made._take(distribution(name))
        return made

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        """The folder site-packages."""
        return self.folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"

    def _take(self, found: Distribution) -> None:
        here = Path(sysconfig.get_path("purelib"))
        for file in found.files or ():
            source = Path(str(found.locate_file(file)))
            # Scripts name their interpreter, and cached bytecode is made anew.
            if source.is_relative_to(here) and source.suffix != ".pyc" and source.is_file():
                _link(source, self.site / source.relative_to(here))

    def variables(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the process environment as if this one were activated, with pip and uv offline."""
        left_out = ("PIP_", "PYTHON", "UV_")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        variables |= {
            "VIRTUAL_ENV": str(self.folder),
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INDEX": "1",
            "UV_NO_CONFIG": "1",
            "UV_OFFLINE": "1",
            "UV_NO_INDEX": "1",
        }
        return variables | dict(more or {})

    def run(
        self, *command: str | Path, more: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in this environment and return what it printed, whatever its exit status."""
        return subprocess.run(
            [str(word) for word in command],
            env=self.variables(more),
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def install(self, wheels: Iterable[Path]) -> None:
        """Install wheel files with uv, without what they require.

        Raises:
            RuntimeError: uv failed; the message has its output.
        """
        result = self.run("uv", "pip", "install", "--python", self.python, "--no-deps", *wheels)
        if result.returncode:
            raise RuntimeError(f"the wheels could not be installed:\n{result.stdout}")
