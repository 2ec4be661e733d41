"""Which build of torch is installed, read from its files: importing the wrong one ends the process."""

from __future__ import annotations

import ast
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from vllm_ascend.doctor.report import Finding, Status

MEND = (
    "install the CPU build: `uv pip install --torch-backend=cpu torch=={version}`, or with pip the wheel of "
    "{version}+cpu from PyTorch's CPU index"
)


def read_assignments(path: Path) -> dict[str, object]:
    """The module-level names of a Python file that are assigned constants; the file is not executed."""
    found: dict[str, object] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            found.update({it.id: node.value.value for it in node.targets if isinstance(it, ast.Name)})
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.target, ast.Name)
        ):
            found[node.target.id] = node.value.value
    return found


def torch_build() -> Finding:
    """The build of torch. torch_npu needs the CPU build: both register settings of device memory under one name."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return Finding(
            "torch build", Status.PROBLEM, "torch is not installed", "vLLM runs on torch", MEND.format(version="X.Y.Z")
        )
    version_file = Path(spec.origin).with_name("version.py")
    if not version_file.is_file():
        where = str(version_file)
        return Finding("torch build", Status.PROBLEM, f"{where} is missing", "torch is damaged", "install torch again")
    build = read_assignments(version_file)
    number = str(build.get("__version__", "?"))
    for toolkit in ("cuda", "hip", "xpu"):
        if build.get(toolkit):
            return Finding(
                "torch build",
                Status.PROBLEM,
                f"{number} for {toolkit.upper()} {build[toolkit]}",
                "torch_npu works with the CPU build of torch only; with this one `import torch` ends the process "
                '("Duplicated key … found in device-specific configuration parser hook registration")',
                MEND.format(version=number.partition("+")[0]),
            )
    try:
        recorded = version("torch")
    except PackageNotFoundError:
        recorded = number
    if recorded.partition("+")[0] != number.partition("+")[0]:
        return Finding(
            "torch build",
            Status.PROBLEM,
            f"files of {number}, metadata of {recorded}",
            "two installations of torch lie over each other",
            "uninstall torch until it is gone, then install it again",
        )
    return Finding("torch build", Status.OK, f"{number} for CPU")
