"""A CUDA torch and a stock Triton are recognised by their files, before anything imports them."""

import base64
import hashlib
import subprocess
import sys
import sysconfig
from pathlib import Path
from runpy import run_path

import pytest

from ascend_integration.packaging.workspace import ROOT

TOOL = ROOT / "tools" / "installed.py"
problems = run_path(str(TOOL))["problems"]


def add(site: Path, name: str, version: str, files: dict[str, str]) -> None:
    """Install a distribution with `files`, as an installer leaves it."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    lines = []
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}")
    (site / info).mkdir()
    (site / info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (site / info / "RECORD").write_text("\n".join([*lines, f"{info}/RECORD,,", ""]))


def version_file(version: str, cuda: str) -> dict[str, str]:
    """torch/version.py as torch 2.13.0's wheels have it."""
    return {
        "torch/version.py": "from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n"
        f"__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = {cuda}\nhip: Optional[str] = None\n"
    }


ASCEND_TRITON = {"triton/__init__.py": "'triton-ascend'\n", "triton/language/__init__.py": "\n"}


def test_the_running_environment_is_sound() -> None:
    assert problems(Path(sysconfig.get_path("purelib"))) == []


def test_cpu_torch_with_triton_ascend_is_sound(tmp_path: Path) -> None:
    add(tmp_path, "torch", "2.13.0+cpu", version_file("2.13.0+cpu", "None"))
    add(tmp_path, "triton-ascend", "3.2.0", ASCEND_TRITON)
    assert problems(tmp_path) == []


def test_cuda_torch_is_explained(tmp_path: Path) -> None:
    add(tmp_path, "torch", "2.13.0", version_file("2.13.0+cu130", "'13.0'"))
    (problem,) = problems(tmp_path)
    assert problem.startswith("torch 2.13.0 is built for CUDA 13.0: with it, torch_npu ends the process at import.")


def test_stock_triton_beside_triton_ascend_is_explained(tmp_path: Path) -> None:
    add(tmp_path, "triton-ascend", "3.2.0", ASCEND_TRITON)
    add(tmp_path, "triton", "3.7.1", {"triton/__init__.py": "'stock'\n"})
    first, second = problems(tmp_path)
    assert first.startswith("the distribution triton 3.7.1 is installed: it writes the folder triton/")
    assert second.startswith("1 files of triton-ascend are not its own, triton/__init__.py for one")


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_file_of_triton_ascend_that_is_not_its_own_is_named(tmp_path: Path, damage: str) -> None:
    add(tmp_path, "triton-ascend", "3.2.0", ASCEND_TRITON)
    file = tmp_path / "triton" / "language" / "__init__.py"
    file.unlink() if damage == "missing" else file.write_text("stock = True\n")
    (problem,) = problems(tmp_path)
    assert "triton/language/__init__.py" in problem


def test_the_tool_imports_nothing_that_it_inspects() -> None:
    code = f"import runpy, sys; runpy.run_path({str(TOOL)!r}); sys.exit('torch' in sys.modules)"
    # -I: no site-packages settings of the user, -S: no .pth file is run.
    assert subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False).returncode == 0
