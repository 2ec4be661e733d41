import io
import tarfile
from pathlib import Path

import pytest

from ascend_integration.upstream.sdist import adapt, unpack
from ascend_integration.upstream.selection import Adaptation, read_selection

SIXTEEN = Adaptation("why", ("conftest.py",), old="size = 16", new="size = 128")


def test_the_selection_is_well_formed() -> None:
    selection = read_selection()
    paths = [path for group in selection.groups for path in group.paths]
    assert len(paths) == len(set(paths))
    assert "v1/core" in paths
    assert all(entry.why.strip() and entry.files for entry in selection.adaptations)


def test_an_adaptation_changes_its_files_alone(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "other.py"):
        (tmp_path / "tests" / name).write_text("size = 16\nrest = 16\n")
    adapt(tmp_path, (SIXTEEN,))
    assert (tmp_path / "tests" / "conftest.py").read_text() == "size = 128\nrest = 16\n"
    assert (tmp_path / "tests" / "other.py").read_text() == "size = 16\nrest = 16\n"


def test_an_adaptation_without_its_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").write_text("size = 32\n")
    with pytest.raises(ValueError, match="conftest.py has no 'size = 16', which selection.toml replaces"):
        adapt(tmp_path, (SIXTEEN,))


def test_vllm_itself_is_not_unpacked(tmp_path: Path) -> None:
    archive = tmp_path / "vllm-0.23.0.tar.gz"
    with tarfile.open(archive, "w:gz") as target:
        for name in ("tests/v1/test_a.py", "vllm/__init__.py", "pyproject.toml", "pyproject.toml.orig", "setup.py"):
            target.addfile(tarfile.TarInfo(f"vllm-0.23.0/{name}"), io.BytesIO())
    unpack(archive, tmp_path / "to")
    found = {path.relative_to(tmp_path / "to").as_posix() for path in (tmp_path / "to").rglob("*") if path.is_file()}
    assert found == {"tests/v1/test_a.py", "pyproject.toml"}
