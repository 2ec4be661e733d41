"""Activating the simulation, just before torch_npu is imported: its build, its libraries, its settings."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

from ascend_sim import location
from ascend_sim.settings import SettingsError, load_settings


class ActivationError(RuntimeError):
    """The simulation cannot be activated; the message says why and what to do."""


def _rebuild() -> None:
    """Bring the build up to date after an edit of its sources."""
    print("ascend-sim: the sources have changed, building", file=sys.stderr)
    result = subprocess.run([sys.executable, "-m", "ascend_sim", "build"], capture_output=True, text=True)
    if result.returncode:
        output = f"{result.stdout}{result.stderr}"
        raise ActivationError(f"The simulated CANN could not be built from the changed sources.\n{output}")


def _find_build() -> Path:
    versions = location.installed_versions()
    directory = location.build_directory(versions)
    if not location.is_complete(directory) and location.complete_builds(versions):
        _rebuild()
        directory = location.build_directory(versions)
    if not location.is_complete(directory):
        raise ActivationError(
            f"torch_npu {versions['torch_npu']} needs CANN or its simulation, and the simulation has not been built "
            f"for torch {versions['torch']} and these sources: run `{sys.executable} -m ascend_sim build` "
            "(or set ASCEND_SIM=0 to leave the simulation out)."
        )
    return directory


def _map(directory: Path) -> None:
    """Map the CANN libraries, so that the dynamic linker finds them by soname when it loads torch_npu."""
    try:
        for name in (location.RUNTIME, *location.CANN_LIBRARIES):
            ctypes.CDLL(str(directory / name), mode=ctypes.RTLD_GLOBAL | os.RTLD_LAZY)
    except OSError as error:
        repair = f"{sys.executable} -m ascend_sim build --force"
        raise ActivationError(
            f"The simulated CANN in {directory} cannot be loaded ({error}): run `{repair}`."
        ) from error


def _configure(directory: Path) -> None:
    """Give the runtime its settings: torch_npu asks for the SoC while it is imported."""
    try:
        settings = load_settings()
        devices = settings.visible_devices
    except SettingsError as error:
        raise ActivationError(str(error)) from error
    library = ctypes.CDLL(str(directory / location.RUNTIME))
    library.sim_configure.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_double, ctypes.c_int]
    library.sim_configure.restype = None
    library.sim_configure(settings.soc.encode(), devices, settings.memory, settings.event_timeout, int(settings.trace))


def activate() -> Path:
    """Activate the simulation and return the folder of its build.

    Raises:
        ActivationError: it is not built, cannot be loaded, or a setting is wrong.
    """
    directory = _find_build()
    _map(directory)
    _configure(directory)
    return directory
