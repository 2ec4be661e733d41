"""Diagnosis of an installation, without importing torch."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from ascend_sim import location, preload
from ascend_sim.settings import SettingsError, load_settings


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis; a problem says what to do about it."""

    text: str
    problem: bool = False


def _packages() -> list[Finding]:
    versions = location.installed_versions()
    found = [Finding(f"{name} {version}") for name, version in sorted(versions.items())]
    missing = [name for name in ("torch", "torch_npu") if name not in versions]
    return found + [Finding(f"{name} is not installed: install ascend-sim's requirements", True) for name in missing]


def _build() -> Finding:
    versions = location.installed_versions()
    if len(versions) != 2:
        return Finding("no build can exist without torch and torch_npu", True)
    directory = location.build_directory(versions)
    if location.is_complete(directory):
        return Finding(f"built: {directory}")
    compilers = "" if shutil.which("g++") or shutil.which("c++") else " (needs a C++ compiler; none is on PATH)"
    return Finding(
        f"not built for these versions and sources: run `{sys.executable} -m ascend_sim build`{compilers}", True
    )


def _activity() -> Finding:
    if preload.EXPECTED:
        return Finding("torch_npu runs on the simulation here")
    if os.environ.get("ASCEND_SIM") == "0":
        return Finding("off: ASCEND_SIM=0")
    cann = preload.real_cann()
    if cann:
        return Finding(f"off: a real CANN is present ({cann})")
    return Finding("torch_npu is not on this interpreter's path", True)


def _start() -> Finding:
    """Whether interpreters of this environment prepare for the simulation when they start."""
    name = "zz_ascend_sim.pth"
    if any((Path(folder) / name).exists() for folder in sys.path):
        return Finding("prepared at interpreter start")
    return Finding(f"{name} is missing from site-packages: reinstall ascend-sim", True)


def _settings() -> list[Finding]:
    try:
        settings = load_settings()
        memory = f"{settings.memory / 2**30:g} GiB"
        orders = {"off": "as submitted", "check": "checked", "random": f"random, seed {settings.seed}"}
        return [
            Finding(f"{settings.visible_devices} {settings.soc} with {memory} each"),
            Finding(f"order of streams: {orders[settings.order]} (ASCEND_SIM_ORDER)"),
        ]
    except SettingsError as error:
        return [Finding(str(error), True)]


def examine() -> list[Finding]:
    """Everything worth knowing about this installation, in reading order."""
    return [*_packages(), _build(), _start(), _activity(), *_settings()]
