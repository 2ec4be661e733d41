"""A set of versions says what is really locked."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ascend_integration.packaging import MEMBERS, PUBLISHED
from ascend_integration.packaging.workspace import ROOT

SETS = sorted((ROOT / "integration" / "sets").glob("vllm-*.toml"))
LOCKED = {
    package["name"]: package.get("version") for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]
}


@pytest.fixture(params=SETS, ids=lambda path: path.stem)
def chosen(request: pytest.FixtureRequest) -> tuple[Path, dict[str, Any]]:
    return request.param, tomllib.loads(request.param.read_text())


def test_file_is_named_after_its_vllm(chosen: tuple[Path, dict[str, Any]]) -> None:
    path, content = chosen
    assert path.name == f"vllm-{content['vllm']}.toml"


def test_the_newest_set_is_the_locked_one() -> None:
    content = tomllib.loads(SETS[-1].read_text())
    verified = content["verified"]
    torch = re.search(r"^torch==(\S+)", (ROOT / "locks" / "torch-cpu.txt").read_text(), re.MULTILINE)
    assert torch
    assert verified["torch"] == torch[1]
    assert content["vllm"] == LOCKED["vllm"]
    for name in ("torch-npu", "triton-ascend", "ascendnpu-ir", "transformers", "numpy"):
        assert (name, verified[name]) == (name, LOCKED[name])
    assert verified["members"] == {member.name: member.version for member in PUBLISHED}


def test_integration_requires_the_set() -> None:
    content = tomllib.loads(SETS[-1].read_text())
    (integration,) = [member for member in MEMBERS if member.name == "ascend-integration"]
    required = integration.project["dependencies"]
    assert f"vllm=={content['vllm']}" in required
    for name in ("torch-npu", "triton-ascend", "ascendnpu-ir"):
        assert f"{name}=={content['verified'][name]}" in required
