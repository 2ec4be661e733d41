"""Build the wheel of a member and look into it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from ascend_integration.packaging.workspace import Member


def build_wheel(member: Member, folder: Path) -> Path:
    """Build the wheel of `member` into `folder` with the build backend of this environment, and return its path.

    Raises:
        RuntimeError: the build failed; the message has the backend's output.
    """
    before = set(folder.glob("*.whl"))
    result = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=member.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise RuntimeError(f"the wheel of {member.name} could not be built:\n{result.stdout}{result.stderr}")
    (wheel,) = set(folder.glob("*.whl")) - before
    return wheel


def wheel_files(wheel: Path) -> set[str]:
    """Return the paths of all files in `wheel`."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename for entry in archive.infolist() if not entry.is_dir()}


def wheel_metadata(wheel: Path) -> Message:
    """Return the headers of the METADATA of `wheel`."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode())
