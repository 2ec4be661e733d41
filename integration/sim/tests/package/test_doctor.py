"""The diagnosis of an installation."""

import subprocess
import sys
from pathlib import Path

import pytest

from ascend_sim import doctor


def problems() -> list[str]:
    return [finding.text for finding in doctor.examine() if finding.problem]


def test_a_sound_installation() -> None:
    result = subprocess.run([sys.executable, "-m", "ascend_sim", "doctor"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    for line in (
        "ok  torch_npu 2.13.0",
        "ok  CXX: ",
        "CANN functions that torch_npu links to are not implemented: ",
        "ok  torch_npu runs on the simulation here",
        "ok  ASCEND_SIM_SOC=Ascend910B1 (default)",
        " references: ",
        "ok  npu:0: Ascend910B1, an operator gives the right result",
    ):
        assert line in result.stdout


def test_a_missing_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_SIM_CACHE_DIR", str(tmp_path))
    (problem,) = problems()
    assert problem.startswith("not built for these versions and sources: run `")
    assert "-m ascend_sim build`" in problem


def test_a_missing_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert problems() == ["no compiler for a new build: no-such-compiler is not on PATH; install g++ or set CXX"]


def test_a_wrong_setting_and_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_SIM_SOC", "Ascend910B9")
    assert any("ASCEND_SIM_SOC='Ascend910B9': expected one of" in problem for problem in problems())
    result = subprocess.run([sys.executable, "-m", "ascend_sim", "doctor"], capture_output=True, text=True)
    assert result.returncode == 1
    assert "problem  ASCEND_SIM_SOC=" in result.stdout
