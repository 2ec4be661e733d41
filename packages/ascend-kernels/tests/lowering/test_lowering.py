"""The compilers themselves, in a process without the interpreter: controls are refused, a known kernel is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton.backends.ascend", reason="lowering is triton-ascend's")
pytest.importorskip("ascendnpuir", reason="lowering needs the AscendNPU IR compiler")


@pytest.fixture(scope="module")
def lowered(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]]]:
    """What the command prints for one operator, and its results."""
    report = tmp_path_factory.mktemp("lowering") / "report.json"
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-W", "ignore", "-m", "ascend_kernels.lowering", "slot_mapping"]
    done = subprocess.run(
        [*command, "--target", "ascend910b1", "--processes", "1", "--json", str(report)],
        env=environment | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads(Path(report).read_text())


def test_kernels_that_must_not_pass_are_refused_for_the_right_reason(lowered: tuple[str, Any]) -> None:
    lines = [line for line in lowered[0].splitlines() if line.startswith("control")]
    assert len(lines) == 6
    reasons = " ".join(lines)
    for reason in (
        "ub overflow, requires",
        "cc overflow, requires",
        "only after retries",
        "no_such_function",
        "lowers",
    ):
        assert reason in reasons
    assert "WRONG" not in reasons


def test_a_kernel_that_reads_and_writes_once_moves_the_minimum(lowered: tuple[str, Any]) -> None:
    results = lowered[1]
    assert {result["call"] for result in results} == {"R4-T4096-int32", "R4-T4096-int64"}
    for result in results:
        assert result["cores"] == ["vector"]
        assert 0 < result["unified_buffer"] <= 192 * 1024
        # Fewer bytes than the minimum would be an error of the count.
        assert result["traffic"] == pytest.approx(1.0, abs=0.01)
        assert result["problems"] == []
