"""torchvision imports although its compiled extension does not load; its operators say why they cannot run."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

USE = """
import torch, torchvision
from torchvision.transforms.v2 import functional
x = torch.arange(64.0).reshape(1, 8, 8)
assert functional.resize(x, [4, 4], antialias=False)[0, 0].tolist() == [4.5, 6.5, 8.5, 10.5]  # means of 2 x 2
print(torchvision.__file__, torchvision.__spec__.loader.__class__.__name__)
"""
CALL = "torch.ops.torchvision.nms(torch.ones(1, 4, device='npu'), torch.ones(1, device='npu'), 0.5)"


@pytest.fixture
def with_broken_extension(tmp_path: Path) -> Path:
    """A folder whose torchvision is the installed one with an extension that is no library."""
    files = importlib.metadata.files("torchvision") or []
    real = Path(str(next(it for it in files if str(it) == "torchvision/__init__.py").locate())).parent
    folder = tmp_path / "torchvision"
    folder.mkdir()
    for entry in real.iterdir():
        if entry.name != "_C.so":
            (folder / entry.name).symlink_to(entry)
    (folder / "_C.so").write_text("no library")
    return tmp_path


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{path}:{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=environment)


def test_transforms_work_in_a_process_and_its_children(with_broken_extension: Path) -> None:
    child = f"[sys.executable, '-W', 'ignore', '-c', {USE!r}]"
    children = f"import subprocess, sys\nsubprocess.run({child}, check=True)\n{USE}"
    result = run(children, with_broken_extension)
    assert result.returncode == 0, result.stderr
    line = f"{with_broken_extension / 'torchvision' / '__init__.py'} SourceFileLoader"
    assert result.stdout.count(line) == 2


def test_an_operator_says_why_it_cannot_run(with_broken_extension: Path) -> None:
    result = run(f"{USE}\n{CALL}", with_broken_extension)
    message = next(line for line in result.stderr.splitlines() if line.startswith("NotImplementedError"))
    assert "torchvision::nms cannot run: torchvision's compiled extension does not load beside this torch" in message
    assert "too short" in message  # what the dynamic linker says of the file
    assert "PyTorch's CPU wheels" in message
