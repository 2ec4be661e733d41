"""Wheels of every member, built once per process."""

from pathlib import Path

import pytest

from ascend_integration.packaging import MEMBERS, build_wheel


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of every member, as `make wheels` leaves it."""
    folder = tmp_path_factory.mktemp("dist")
    for member in MEMBERS:
        build_wheel(member, folder)
    return folder


@pytest.fixture(scope="session")
def wheels(dist: Path) -> dict[str, Path]:
    """The wheel files by distribution name."""
    return {wheel.name.split("-")[0].replace("_", "-"): wheel for wheel in dist.glob("*.whl")}
