"""Interpreter start, from `zz_ascend_sim.pth`: map the simulated CANN so that torch_npu finds it by soname.

Does nothing where a real CANN is present, torch_npu is not installed, or `ASCEND_SIM=0`. Must cost little and never
raise: problems are kept and told when torch_npu is imported.
"""
# ruff: noqa: PTH118
# os.path rather than pathlib, whose import would take longer than all that happens here.

import os
import sys

from ascend_sim import location

EXPECTED = False  # this process should run on the simulation
ACTIVE = False  # and it does: the libraries are mapped
BUILD: str | None = None  # folder of the build that is mapped


class _TorchNpuHook:
    """Meta path finder that acts just before torch_npu is imported: applies the settings, or explains a problem."""

    def __init__(self, problem: str | None, stale: bool) -> None:
        self.problem = problem
        self.stale = stale  # there was a build before the sources changed

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "torch_npu":
            return None
        if self.stale:
            self.problem, self.stale = _rebuild(), False
        if self.problem is not None:
            from importlib.machinery import ModuleSpec

            return ModuleSpec(name, self)  # type: ignore[arg-type]
        sys.meta_path.remove(self)
        from ascend_sim import runtime

        runtime.configure()
        return None

    def create_module(self, spec):  # type: ignore[no-untyped-def]
        return None

    def exec_module(self, module):  # type: ignore[no-untyped-def]
        raise ImportError(self.problem)


def _rebuild() -> str | None:
    """Bring the build up to date after an edit of its sources, and map it. Returns what went wrong."""
    import subprocess

    print("ascend-sim: the sources have changed, building", file=sys.stderr)
    result = subprocess.run([sys.executable, "-m", "ascend_sim", "build"], capture_output=True, text=True)
    if result.returncode:
        return f"The simulated CANN could not be built from the changed sources.\n{result.stdout}{result.stderr}"
    return _activate(location.build_directory(location.installed_versions()))


def _activate(directory: str) -> str | None:
    """Map a build's libraries. Returns what went wrong."""
    global ACTIVE, BUILD
    from _ctypes import dlopen  # what ctypes.CDLL calls; importing ctypes itself takes several milliseconds

    try:
        for name in (location.RUNTIME, *location.CANN_LIBRARIES):
            dlopen(os.path.join(directory, name), os.RTLD_GLOBAL | os.RTLD_LAZY)
    except OSError as error:
        repair = f"{sys.executable} -m ascend_sim build --force"
        return f"The simulated CANN in {directory} cannot be loaded ({error}): run `{repair}`."
    ACTIVE, BUILD = True, directory
    os.environ["TASK_QUEUE_ENABLE"] = "0"  # no launch thread between an operator and its kernel
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # an idle OpenMP team must not spin on a core others need
    os.environ.setdefault("ASCEND_KERNELS_BACKEND", "naive")
    if os.environ.get("TRITON_INTERPRET") == "1":  # triton-ascend looks for its compiler before it believes in an NPU
        os.environ["PATH"] = f"{os.path.join(directory, 'bin')}:{os.environ.get('PATH', '')}"
    return None


def preload() -> None:
    """Map the simulated CANN if this process should have one."""
    global EXPECTED
    if os.environ.get("ASCEND_SIM") == "0" or location.real_cann():
        return
    versions = location.installed_versions()
    if len(versions) != 2:
        return
    EXPECTED = True
    directory = location.build_directory(versions)
    if location.is_complete(directory):
        hook = _TorchNpuHook(_activate(directory), stale=False)
    else:
        hook = _TorchNpuHook(
            f"torch_npu {versions['torch_npu']} needs CANN or its simulation, and the simulation has not been built "
            f"for torch {versions['torch']} and these sources: run `{sys.executable} -m ascend_sim build` "
            "(or set ASCEND_SIM=0 to leave the simulation out).",
            stale=location.has_older_build(versions),
        )
    sys.meta_path.insert(0, hook)


preload()
