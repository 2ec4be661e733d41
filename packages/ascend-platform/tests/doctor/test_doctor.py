"""`vllm-ascend doctor` on this environment and on damaged ones."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vllm_ascend.doctor import Finding, Report, Status
from vllm_ascend.doctor.owner import our_distribution
from vllm_ascend.doctor.probe import run_probe
from vllm_ascend.doctor.runtime import is_cann, runtime_finding
from vllm_ascend.doctor.triton_owner import triton_owner
from vllm_ascend.doctor.versions import requirements, versions


def doctor(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """The command, run by an interpreter."""
    command = [python, "-m", "vllm_ascend", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def healthy() -> subprocess.CompletedProcess[str]:
    return doctor("doctor", "--json")


def test_this_environment_is_healthy(healthy: subprocess.CompletedProcess[str]) -> None:
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr
    report = json.loads(healthy.stdout)
    assert report["ok"] is True
    found = {it["subject"]: it for it in report["findings"]}
    assert found["vllm"]["value"] == "0.23.0"
    assert found["torch build"]["value"].endswith("for CPU")
    assert found["triton"]["value"].startswith("belongs to triton-ascend")
    assert found["vLLM's platform"]["value"] == "vllm_ascend.platform.platform.AscendPlatform"
    assert found["NPU"]["status"] == "ok"
    assert "libascendcl" in found["Ascend runtime"]["value"]
    assert found["component moe"]["value"] == (
        "ascend-moe 0.1.0: layer MoERunner, layer UnquantizedFusedMoEMethod, expert_balancer eplb"
    )
    assert found["component spec_decode"]["value"] == "ascend-specdecode 0.1.0: claims nothing"


@pytest.mark.parametrize("missing", ["vllm", "torch-npu"])
def test_what_is_missing_is_a_problem_with_a_remedy(environment_without: Callable[[str], str], missing: str) -> None:
    done = doctor("doctor", "--json", python=environment_without(missing))
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    problems = {it["subject"]: it for it in report["findings"] if it["status"] == "problem"}
    assert problems[missing]["value"] == "not installed"
    assert "pip install" in problems[missing]["mend"]


def test_triton_may_be_absent(environment_without: Callable[[str], str]) -> None:
    done = doctor("doctor", "--json", python=environment_without("triton-ascend"))
    assert done.returncode == 0, done.stdout
    found = {it["subject"]: it for it in json.loads(done.stdout)["findings"]}
    assert (found["triton"]["status"], found["triton"]["value"]) == ("note", "not installed")


def package(folder: Path, distribution: str, version: str, files: dict[str, str], record: dict[str, str]) -> None:
    """Files on disk, and a RECORD that may say something else."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    metadata = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    lines = []
    for name, text in record.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(text.encode())}")
    (metadata / "RECORD").write_text("\n".join(lines) + "\n")


OURS, STOCK = "backend = 'ascend'\n", "backend = 'nvidia'\n"


@pytest.mark.parametrize(
    ("on_disk", "stock_installed", "status", "says"),
    [
        (OURS, False, Status.OK, "belongs to triton-ascend 3.2.99"),
        (
            STOCK,
            True,
            Status.PROBLEM,
            "1 files are not those of triton-ascend 3.2.99 and triton 3.6.0 is installed too",
        ),
        (STOCK, False, Status.PROBLEM, "1 files are not those of triton-ascend 3.2.99"),
        (OURS, True, Status.PROBLEM, "triton 3.6.0 is installed too"),
    ],
    ids=["ours", "overwritten", "overwritten-and-gone", "both"],
)
def test_whose_triton_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: str, stock_installed: bool, status: Status, says: str
) -> None:
    package(tmp_path, "triton-ascend", "3.2.99", {"triton/__init__.py": on_disk}, {"triton/__init__.py": OURS})
    if stock_installed:
        package(tmp_path, "triton", "3.6.0", {}, {"triton/__init__.py": STOCK})
    monkeypatch.syspath_prepend(str(tmp_path))
    (finding,) = triton_owner()
    assert finding.status is status
    assert says in finding.value


@pytest.mark.parametrize(
    ("version_file", "status", "says"),
    [
        ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n", Status.OK, "2.13.0+cpu for CPU"),
        ("__version__ = '2.13.0'\ncuda: Optional[str] = '13.0'\n", Status.PROBLEM, "2.13.0 for CUDA 13.0"),
        ("__version__ = '2.13.0'\ncuda = None\nhip = '7.1'\n", Status.PROBLEM, "2.13.0 for HIP 7.1"),
    ],
    ids=["cpu", "cuda", "rocm"],
)
def test_the_build_of_torch_is_read_and_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version_file: str, status: Status, says: str
) -> None:
    files = {"torch/__init__.py": "raise SystemExit('imported')\n", "torch/version.py": version_file}
    package(tmp_path, "torch", "2.13.0", files, {})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    script = (
        "from vllm_ascend.doctor.torch_build import torch_build\n"
        "it = torch_build()\n"
        "print(it.status, it.value, it.mend, sep='|')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found_status, value, mend = done.stdout.strip().split("|")
    assert (found_status, value) == (status, says)
    assert ("--torch-backend=cpu torch==2.13.0" in mend) == (status is Status.PROBLEM)


def test_a_foreign_distribution_of_our_name_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "vllm-ascend", "0.18.0", {}, {})
    points = tmp_path / "vllm_ascend-0.18.0.dist-info" / "entry_points.txt"
    points.write_text("[vllm.platform_plugins]\nascend = vllm_ascend:register\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (finding,) = our_distribution()
    assert finding.status is Status.PROBLEM
    assert "0.18.0, with the platform plugin vllm_ascend:register" in finding.value


def test_versions_that_do_not_belong_together_are_named(installer: Any) -> None:
    installer.add("torch-npu", {}, {})
    metadata = installer.folder / "torch_npu-1.2.3.dist-info" / "METADATA"
    metadata.write_text("Metadata-Version: 2.1\nName: torch-npu\nVersion: 1.2.3\nRequires-Dist: torch==1.2.*\n")
    (finding,) = [it for it in requirements() if it.status is Status.PROBLEM]
    assert finding.value.startswith("torch-npu 1.2.3 requires torch==1.2.*; installed: 2.13.0")
    problem = next(it for it in versions() if it.subject == "torch-npu")
    assert problem.status is Status.PROBLEM
    assert problem.value == "1.2.3; allowed: >=2.10"


def test_cann_is_recognised_by_where_the_library_lies(tmp_path: Path) -> None:
    library = tmp_path / "cann" / "lib64" / "libascendcl.so"
    library.parent.mkdir(parents=True)
    library.touch()
    assert not is_cann(library, None)
    assert is_cann(library, str(tmp_path / "cann"))
    (tmp_path / "cann" / "ascend_toolkit_install.info").touch()
    assert is_cann(library, None)
    assert runtime_finding(None).status is Status.PROBLEM
    assert runtime_finding(str(library)).status is Status.OK


def test_a_runtime_that_does_not_answer_is_reported_not_awaited() -> None:
    answers, ended = run_probe(timeout=0.01)
    assert answers == {}
    assert ended == "no answer within 0 s"


def test_every_problem_has_a_remedy_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    from vllm_ascend.doctor.render import print_report

    print_report(Report((Finding("it", Status.PROBLEM, "is broken", "because", "do this"),)))
    text = capsys.readouterr().out
    assert "mend: do this" in text
    assert "1 problem(s)." in text
