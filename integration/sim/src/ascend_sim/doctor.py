"""Diagnosis of an installation, without importing torch here: a new process tries it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ascend_sim import location, preload
from ascend_sim.settings import PREFIX, SettingsError, load_settings


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
        found = [
            Finding(f"{settings.visible_devices} {settings.soc} with {memory} each"),
            Finding(f"order of streams: {orders[settings.order]} (ASCEND_SIM_ORDER)"),
        ]
    except SettingsError as error:
        return [Finding(str(error), True)]
    for name, value in settings:
        variable = f"{PREFIX}{name.upper()}"
        origin = "set" if variable in os.environ else "default"
        found.append(Finding(f"{variable}={','.join(value) if isinstance(value, tuple) else value} ({origin})"))
    return found


def _compilers() -> list[Finding]:
    found = []
    for variable, names in (("CC", ("gcc", "cc", "clang")), ("CXX", ("g++", "c++", "clang++"))):
        candidates = (os.environ[variable],) if os.environ.get(variable) else names
        path = next(filter(None, map(shutil.which, candidates)), None)
        if path is None:
            missing = " or ".join(candidates)
            text = f"no compiler for a new build: {missing} is not on PATH; install g++ or set {variable}"
            found.append(Finding(text, True))
            continue
        answer = subprocess.run([path, "--version"], capture_output=True, text=True)
        found.append(Finding(f"{variable}: {path}, {answer.stdout.partition(chr(10))[0]}"))
    return found


def _symbols() -> list[Finding]:
    """CANN functions that the runtime only stands in for: calling one is an error that names it."""
    stubs = location.build_directory(location.installed_versions()) / location.STUBS
    if not stubs.is_file():
        return []
    missing = stubs.read_text(encoding="utf-8").count("sim_unimplemented(") - 1  # and its declaration
    return [Finding(f"{missing} CANN functions that torch_npu links to are not implemented: {stubs}")]


_TRIAL = """
import torch, torch_npu
from ascend_sim.references import registered
x = torch.arange(4, device="npu").add(1)
assert x.tolist() == [1, 2, 3, 4], x
grades = [str(entry.grade) for entry in registered().values()]
count = ", ".join(f"{grades.count(grade)} {grade}" for grade in ("golden", "documented", "guessed"))
print(f"{len(torch.ops.ascend_sim.installed())} operators answered; {len(grades)} references: {count}")
print(f"{x.device}: {torch.npu.get_device_name(0)}, an operator gives the right result")
"""


def _trial() -> list[Finding]:
    """What a new process sees when it uses the NPU."""
    environment = os.environ | {"ASCEND_SIM_CHROME_TRACE": ""}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _TRIAL], capture_output=True, text=True, env=environment
    )
    if result.returncode == 0:
        return [Finding(line) for line in result.stdout.splitlines() if line and not line.startswith("Warning")]
    lines = [line for line in result.stderr.splitlines() if line.strip()] or ["no message"]
    repair = f"{sys.executable} -m ascend_sim build --force"
    return [Finding(f"using the NPU fails: {lines[-1]}; if the message above does not help: `{repair}`", True)]


def examine() -> list[Finding]:
    """Everything worth knowing about this installation, in reading order."""
    found = [*_packages(), *_compilers(), _build(), *_symbols(), _start(), _activity(), *_settings()]
    if preload.EXPECTED and not any(finding.problem for finding in found):
        found += _trial()
    return found
