"""torch.distributed's own tests of collectives, on HCCL over gloo with four ranks."""

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

import pytest
import yaml

HARNESS = Path(__file__).resolve().with_name("harness.py")
LIST = yaml.safe_load(Path(__file__).with_name("torch_tests.yaml").read_text(encoding="utf-8"))
RANKS = 4

# What torch tests beside DistributedDataParallel, optimisers and their like: groups and communication.
SUBJECT = re.compile(
    r"test_(Backend_enum_class|get_rank|get_backend|destroy|new_subgroups|coalescing_manager|batch_isend_irecv|send_recv"
    r"|isend|irecv|broadcast|reduce|all_reduce|scatter|gather|all_gather|all_to_all|barrier(?!_timeout)|nccl_)"
)


def torch_tests() -> list[str]:
    """Names of torch's tests of that kind."""
    spec = util.find_spec("torch.testing._internal.distributed")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    text = Path(spec.submodule_search_locations[0], "distributed_test.py").read_text(encoding="utf-8")
    return [name for name in re.findall(r"^        def (test_\w+)\(", text, re.M) if SUBJECT.match(name)]


@functools.cache
def outcomes(backend: str, folder: str) -> dict[str, list[str]]:
    """Outcome of every test on every rank, in one run of the harness."""
    Path(folder).mkdir()
    environment = os.environ | {
        "ASCEND_SIM_DEVICES": "8",
        "BACKEND": backend,
        "MASTER_ADDR": "127.0.0.1",
        "WORLD_SIZE": str(RANKS),
    }
    command = [sys.executable, "-W", "ignore", str(HARNESS), folder, *LIST["run"][backend]]
    # torch_npu's profiler writes into the working directory.
    result = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    found: dict[str, list[str]] = {}
    for rank in range(RANKS):
        path = Path(folder, f"{rank}.json")
        assert path.exists(), result.stdout + result.stderr
        ranks: dict[str, Any] = json.loads(path.read_text())
        for name, outcome in ranks.items():
            found.setdefault(name, []).append(outcome)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("collectives")


@pytest.mark.parametrize(
    ("backend", "name"), [(backend, name) for backend, names in LIST["run"].items() for name in names]
)
def test_passes_on_every_rank(backend: str, name: str, folder: Path) -> None:
    assert outcomes(backend, str(folder / backend)).get(name) == ["passed"] * RANKS


def test_every_test_runs_or_has_a_reason(report: Callable[..., None]) -> None:
    run = [name for names in LIST["run"].values() for name in names]
    left = [name for entry in LIST["left_out"] for name in entry["tests"]]
    assert sorted(run + left) == sorted(torch_tests())
    report("torch.distributed's own tests, four ranks", kind="run", tests=len(run))
    for entry in LIST["left_out"]:
        report(
            "torch.distributed's own tests, four ranks", kind=f"left out: {entry['reason']}", tests=len(entry["tests"])
        )
