"""Interpreter start, from `zz_ascend_sim.pth`: map the simulated CANN so that torch_npu finds it by soname.

Does nothing where a real CANN is present, torch_npu is not installed, or `ASCEND_SIM=0`. Must cost little and never
raise: problems are kept and told when torch_npu is imported.
"""
# ruff: noqa: PTH118
# os.path rather than pathlib, whose import would take longer than all that happens here.

import os
import sys

from ascend_sim import location

ACTIVE = False
BUILD: str | None = None  # folder of the build that is mapped


class _TorchNpuHook:
    """Meta path finder that acts just before torch_npu is imported: explains a problem, or applies the settings."""

    def __init__(self, problem: str | None) -> None:
        self.problem = problem

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "torch_npu":
            return None
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


def _map_libraries(directory: str) -> None:
    from _ctypes import dlopen  # what ctypes.CDLL calls; importing ctypes itself takes several milliseconds

    for name in (location.RUNTIME, *location.CANN_LIBRARIES):
        dlopen(os.path.join(directory, name), os.RTLD_GLOBAL | os.RTLD_LAZY)


def _set_environment(directory: str) -> None:
    os.environ["TASK_QUEUE_ENABLE"] = "0"  # no launch thread between an operator and its kernel
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # an idle OpenMP team must not spin on a core others need
    os.environ.setdefault("ASCEND_KERNELS_BACKEND", "naive")
    if os.environ.get("TRITON_INTERPRET") == "1":  # triton-ascend looks for its compiler before it believes in an NPU
        os.environ["PATH"] = f"{os.path.join(directory, 'bin')}:{os.environ.get('PATH', '')}"


def preload() -> None:
    """Map the simulated CANN if this process should have one."""
    global ACTIVE, BUILD
    if os.environ.get("ASCEND_SIM") == "0" or location.real_cann():
        return
    versions = location.installed_versions()
    if len(versions) != 2:
        return
    directory = location.build_directory(versions)
    problem = None
    if not location.is_complete(directory):
        problem = (
            f"torch_npu {versions['torch_npu']} needs CANN or its simulation, and the simulation has not been built "
            f"for torch {versions['torch']} and these sources: run `{sys.executable} -m ascend_sim build` "
            "(or set ASCEND_SIM=0 to leave the simulation out)."
        )
    else:
        try:
            _map_libraries(directory)
        except OSError as error:
            problem = (
                f"The simulated CANN in {directory} cannot be loaded ({error}): "
                f"run `{sys.executable} -m ascend_sim build --force`."
            )
    if problem is None:
        ACTIVE, BUILD = True, directory
        _set_environment(directory)
    sys.meta_path.insert(0, _TorchNpuHook(problem))


preload()
