"""What happens when an interpreter starts, with and without a build."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_sim import location

IMPORT = "import torch; print(torch.ones(2).npu().add(1).tolist())"


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = ("ASCEND_KERNELS_BACKEND", "TASK_QUEUE_ENABLE", "OMP_WAIT_POLICY")  # set by this process's own start
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ASCEND_SIM") and k not in inherited}
    environment |= {"OMP_NUM_THREADS": "1"} | variables
    return subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=environment)


def test_every_process_loads_it_without_a_library_path() -> None:
    result = run(
        "import subprocess, sys, os; assert 'LD_LIBRARY_PATH' not in os.environ\n"
        f"subprocess.run([sys.executable, '-c', {IMPORT!r}], check=True)"
    )
    assert "[2.0, 2.0]" in result.stdout, result.stderr


def test_a_missing_build_is_explained_at_import(tmp_path: Path) -> None:
    result = run(IMPORT, ASCEND_SIM_CACHE_DIR=str(tmp_path))
    assert result.returncode == 1
    assert "has not been built" in result.stderr
    assert "-m ascend_sim build" in result.stderr


def test_a_broken_build_is_explained_at_import(tmp_path: Path) -> None:
    build = location.build_directory(location.installed_versions())
    folder = tmp_path / build.name
    folder.mkdir()
    for path in build.iterdir():
        (folder / path.name).symlink_to(path)
    (folder / location.RUNTIME).unlink()
    (folder / location.RUNTIME).write_text("no library")
    result = run(IMPORT, ASCEND_SIM_CACHE_DIR=str(tmp_path))
    assert result.returncode == 1
    assert "cannot be loaded" in result.stderr
    assert "build --force" in result.stderr


def test_a_bad_setting_is_explained_at_import() -> None:
    result = run(IMPORT, ASCEND_SIM_SOC="Ascend42")
    assert result.returncode == 1
    assert "ASCEND_SIM_SOC='Ascend42': expected one of" in result.stderr


def test_settings_reach_torch_npu() -> None:
    code = "import torch; print(torch.npu.get_device_name(0), torch.npu.device_count(), torch.npu.mem_get_info()[1])"
    variables = {"ASCEND_SIM_SOC": "Ascend910_9392", "ASCEND_SIM_DEVICES": "4", "ASCEND_SIM_MEMORY": "1GiB"}
    result = run(code, **variables, ASCEND_RT_VISIBLE_DEVICES="0,2,3")
    assert f"Ascend910_9392 3 {1 << 30}" in result.stdout, result.stderr


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({"ASCEND_SIM": "0"}, id="switched-off"),
        pytest.param({"ASCEND_HOME_PATH": "/opt/cann"}, id="real-cann"),
    ],
)
def test_it_stays_out_of_the_way(variables: dict[str, str]) -> None:
    result = run(
        "import ascend_sim, os; print(ascend_sim.active(), os.environ.get('ASCEND_KERNELS_BACKEND'))", **variables
    )
    assert result.stdout.split() == ["False", "None"], result.stderr


def test_environment_of_a_simulated_process() -> None:
    names = ("TASK_QUEUE_ENABLE", "OMP_WAIT_POLICY", "ASCEND_KERNELS_BACKEND")
    result = run(f"import os; print(*(os.environ[name] for name in {names}))", ASCEND_KERNELS_BACKEND="triton")
    assert result.stdout.split() == ["0", "PASSIVE", "triton"]


def test_triton_interpretation_finds_a_compiler() -> None:
    result = run(
        "import subprocess; print(subprocess.run(['bisheng'], capture_output=True, text=True).stdout)",
        TRITON_INTERPRET="1",
    )
    assert "hiipu64" in result.stdout


def test_starting_costs_little() -> None:
    """CPU time of what the .pth file does, against importing argparse (about 6 ms): the machine may be slow or busy."""
    code = (
        "import sys, time; sys.path[:0] = sys.argv[1].split(':')\n"
        "start = time.process_time(); import ascend_sim.preload\n"
        "middle = time.process_time(); import argparse\n"
        "print((middle - start) / (time.process_time() - middle))"
    )
    command = [sys.executable, "-S", "-c", code, ":".join(entry for entry in sys.path if entry)]
    ratios = [float(subprocess.run(command, capture_output=True, text=True).stdout) for _ in range(5)]
    assert min(ratios) < 0.8  # below 5 ms
