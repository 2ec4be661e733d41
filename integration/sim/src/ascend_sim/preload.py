"""Interpreter start, from `zz_ascend_sim.pth`: torch_npu, should it be imported, is to find the simulated CANN.

Does nothing where a real CANN is present, torch_npu is not installed, or `ASCEND_SIM=0`. It runs in every process of
the environment, so it must cost little and never raise; everything else waits for the import of torch_npu.
"""
# ruff: noqa: PTH100, PTH112, PTH113, PTH118, PTH120
# os.path rather than pathlib, whose import would take longer than all that happens here.

import os
import sys

TYPE_CHECKING = False  # typing is not imported for it
if TYPE_CHECKING:
    from pathlib import Path

EXPECTED = False  # torch_npu runs on the simulation in this process
BUILD: "Path | None" = None  # folder of its build, once torch_npu has been imported


def real_cann() -> str | None:
    """Where a real CANN is, by the variables its setup script sets; None without one."""
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
        if os.environ.get(variable):
            return f"{variable}={os.environ[variable]}"
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and os.path.isfile(os.path.join(folder, "libascendcl.so")):
            return os.path.join(folder, "libascendcl.so")
    return None


class _TorchNpuHook:
    """Meta path finder that acts just before torch_npu is imported: activates the simulation, or explains a problem."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        global BUILD
        if name != "torch_npu":
            return None
        from ascend_sim import activation

        try:
            BUILD = activation.activate()
        except activation.ActivationError as error:
            from importlib.machinery import ModuleSpec

            return ModuleSpec(name, _Explanation(str(error)))  # type: ignore[arg-type]
        sys.meta_path.remove(self)
        return None


class _Explanation:
    """Loader of a module that cannot be imported. Whoever only looks for the module still finds it."""

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def create_module(self, spec):  # type: ignore[no-untyped-def]
        return None

    def exec_module(self, module):  # type: ignore[no-untyped-def]
        raise ImportError(self.problem)


def preload() -> None:
    """Prepare this process for the simulation if it should run on it."""
    global EXPECTED
    if os.environ.get("ASCEND_SIM") == "0" or real_cann():
        return
    if not any(os.path.isdir(os.path.join(folder, "torch_npu")) for folder in sys.path):
        return
    EXPECTED = True
    os.environ["TASK_QUEUE_ENABLE"] = "0"  # no launch thread between an operator and its kernel
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # an idle OpenMP team must not spin on a core others need
    os.environ.setdefault("ASCEND_KERNELS_BACKEND", "naive")
    if os.environ.get("TRITON_INTERPRET") == "1":  # triton-ascend looks for its compiler before it believes in an NPU
        tools = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools")
        os.environ["PATH"] = f"{tools}:{os.environ.get('PATH', '')}"
    sys.meta_path.insert(0, _TorchNpuHook())


preload()
