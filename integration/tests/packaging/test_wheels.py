"""Which file belongs to which wheel, and that none is missing."""

from collections import Counter
from pathlib import Path

import pytest

from ascend_integration.packaging import MEMBERS, Member, wheel_files, wheel_metadata

BY_NAME = pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)

# Distribution -> the import package it owns. Written out: a package that moves to another wheel is a decision.
OWNERS = {
    "ascend-310p": "ascend_310p",
    "ascend-integration": "ascend_integration",
    "ascend-kernels": "ascend_kernels",
    "ascend-moe": "ascend_moe",
    "ascend-quant": "ascend_quant",
    "ascend-sim": "ascend_sim",
    "ascend-specdecode": "ascend_specdecode",
    "vllm-ascend": "vllm_ascend",
}

# Files outside the import package: Python reads .pth files from the top of site-packages only.
TOP_LEVEL = {"ascend-sim": {"zz_ascend_sim.pth"}}


def test_every_member_has_a_wheel(wheels: dict[str, Path]) -> None:
    assert set(wheels) == set(OWNERS)


@BY_NAME
def test_wheel_is_pure_and_of_the_declared_version(wheels: dict[str, Path], member: Member) -> None:
    name = f"{member.name.replace('-', '_')}-{member.version}-py3-none-any.whl"
    assert wheels[member.name].name == name


@BY_NAME
def test_wheel_holds_its_package_and_nothing_else(wheels: dict[str, Path], member: Member) -> None:
    info = f"{member.name.replace('-', '_')}-{member.version}.dist-info"
    tops = Counter(path.split("/")[0] for path in wheel_files(wheels[member.name]))
    assert set(tops) == {OWNERS[member.name], info} | TOP_LEVEL.get(member.name, set())


@BY_NAME
def test_wheel_holds_every_source_file(wheels: dict[str, Path], member: Member) -> None:
    unwanted = {"__pycache__", ".mypy_cache", ".ruff_cache"}
    sources = {
        str(path.relative_to(member.source.parent))
        for path in member.source.rglob("*")
        if path.is_file() and not unwanted & set(path.parts)
    }
    packed = {path for path in wheel_files(wheels[member.name]) if path.startswith(f"{OWNERS[member.name]}/")}
    assert packed == sources
    assert f"{OWNERS[member.name]}/py.typed" in packed
    assert not [path for path in packed if path.endswith((".so", ".o", ".pyc"))]


def test_no_file_is_in_two_wheels(wheels: dict[str, Path]) -> None:
    files = Counter(path for wheel in wheels.values() for path in wheel_files(wheel))
    assert [path for path, count in files.items() if count > 1] == []


@BY_NAME
def test_wheel_carries_its_licence(wheels: dict[str, Path], member: Member) -> None:
    metadata = wheel_metadata(wheels[member.name])
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert f"{member.name.replace('-', '_')}-{member.version}.dist-info/licenses/LICENSE" in wheel_files(
        wheels[member.name]
    )
