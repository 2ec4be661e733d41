"""The running simulation: settings into the runtime, kernels behind torch_npu."""

import ctypes
import functools
from pathlib import Path

from ascend_sim import location, preload
from ascend_sim.settings import Settings, load_settings


@functools.cache
def settings() -> Settings:
    """The settings this process runs with."""
    return load_settings()


@functools.cache
def configure() -> None:
    """Give the runtime its settings. Called just before torch_npu is imported, which asks for the SoC."""
    assert preload.BUILD is not None
    chosen = settings()
    library = ctypes.CDLL(str(Path(preload.BUILD) / location.RUNTIME))
    library.sim_configure.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_double, ctypes.c_int]
    library.sim_configure.restype = None
    library.sim_configure(
        chosen.soc.encode(), chosen.visible_devices, chosen.memory, chosen.event_timeout, int(chosen.trace)
    )


@functools.cache
def install() -> int:
    """Install the kernels behind torch_npu's device. Returns the number of operators answered."""
    import torch
    import torch_npu  # noqa: F401  (defines the operators; its own entry point may come after ours)

    from ascend_sim import distributed, references

    assert preload.BUILD is not None
    for library in (location.DISPATCH, location.REFERENCES):
        torch.ops.load_library(Path(preload.BUILD) / library)
    count: int = torch.ops.ascend_sim.install(references.register_all(), list(settings().adopt))
    distributed.install()
    return count
